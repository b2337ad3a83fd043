"""Time as a port: the wall clock for evidence, the monotonic clock for durations."""

from __future__ import annotations

from typing import Protocol

from controller.domain.instant import InstantMs


class Clock(Protocol):
    def now(self) -> InstantMs:
        """Milliseconds since the epoch, UTC."""
        ...

    def monotonic_seconds(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
