"""Wall time of one call, for benchmarks whose subject runs in this process."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(act: Callable[[], object]) -> float:
    """Wall time of one call."""
    before = time.perf_counter()
    act()
    return time.perf_counter() - before
