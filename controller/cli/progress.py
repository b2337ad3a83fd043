"""Progress bars with elapsed and remaining time, on stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from controller.conductor.status import RoundStatus
    from controller.ports.clock import Clock

QUIET_SECONDS = 30.0  # without a terminal, a line at most this often


class _Bar:
    """A bar on a terminal; a line now and then in a log file."""

    def __init__(self, clock: Clock) -> None:
        self._console = Console(stderr=True)
        self._clock = clock
        self._last = ("", -QUIET_SECONDS)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("remaining"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def update(self, description: str, done: int, total: int) -> None:
        """Show `done` of `total`."""
        self._progress.update(self._task, description=description, completed=done, total=total)
        if self._console.is_terminal:
            return
        now = self._clock.monotonic_seconds()
        if description.split(",")[0] != self._last[0].split(",")[0] or now - self._last[1] >= QUIET_SECONDS:
            self._console.print(f"{description}  {done}/{total}", highlight=False, markup=False)
            self._last = (description, now)


class RoundProgress(_Bar):
    """The progress of a round."""

    def show(self, found: RoundStatus) -> None:
        """Show a status."""
        halted = f", {found.halted} halted" if found.halted else ""
        self.update(f"round {found.round_id}, {found.attempts} attempts{halted}", found.scored, found.runs)


class BuildProgress(_Bar):
    """The progress of an image build, as the callback the bake expects."""

    def callback(self) -> Callable[[str, int, int], None]:
        """`(step, done, total)`."""
        return self.update
