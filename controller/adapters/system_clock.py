"""The machine's own clocks."""

from __future__ import annotations

import time

from controller.domain.instant import InstantMs


class SystemClock:
    """The Clock port over the operating system."""

    def now(self) -> InstantMs:
        """Milliseconds since the epoch, UTC."""
        return InstantMs(time.time_ns() // 1_000_000)

    def monotonic_seconds(self) -> float:
        """Seconds from an arbitrary origin; only differences mean something."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block for at least `seconds`."""
        time.sleep(seconds)
