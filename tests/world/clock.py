"""Clocks that go only where a test sends them."""

from __future__ import annotations

from controller.domain.instant import InstantMs

CLOCK_START = InstantMs(1_000)


class SetClock:
    """The Clock port; it shows what it was set to, and sleeping moves it."""

    def __init__(self, at: InstantMs = CLOCK_START) -> None:
        self.at = at

    def now(self) -> InstantMs:
        return self.at

    def monotonic_seconds(self) -> float:
        return self.at / 1000

    def sleep(self, seconds: float) -> None:
        self.at = InstantMs(self.at + int(seconds * 1000))


class StepClock(SetClock):
    """Every reading of the wall clock is one second later than the one before."""

    def now(self) -> InstantMs:
        self.sleep(1)
        return self.at
