"""A real meter process that kills itself at a chosen point of a chosen call to its ledger.

Processes are forked from one that has imported everything, so that a start costs little.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from controller.adapters.ledger_sql import Session, SqlLedger, Store
from controller.adapters.system_clock import SystemClock
from controller.domain.instant import InstantMs
from controller.errors import FairtrialError
from controller.proxy import serve
from tests.world.processes import call

T = TypeVar("T")
START_SECONDS_MAX = 60.0


class Moment(StrEnum):
    """Relative to the transaction of a call."""

    BEFORE = "before it begins"
    INSIDE = "before it commits"
    AFTER = "after it committed"


@dataclass(frozen=True)
class KillPoint:
    """SIGKILL at a moment of the `number`th call (from 1) of a method of the ledger."""

    method: str
    moment: Moment
    number: int = 1


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _DyingStore:
    """Dies inside the next writing transaction, once its statements have run."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, job: Callable[[Session], T]) -> T:
        def dying(db: Session) -> T:
            result = job(db)
            _die()
            return result

        return self._store.write(dying)


def _let_clock_be_set(path: Path) -> None:
    """The file holds by how many milliseconds the wall clock is off."""
    real = SystemClock.now

    def now(clock: SystemClock) -> InstantMs:
        return InstantMs(real(clock) + (int(path.read_text()) if path.exists() else 0))

    setattr(SystemClock, "now", now)  # noqa: B010  mypy knows no way to say it


def _serve(config: Path, point: KillPoint | None) -> None:
    descriptor = os.open(config.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    _let_clock_be_set(config.with_suffix(".clock"))
    if point is not None:
        real, calls = getattr(SqlLedger, point.method), itertools.count(1)

        def method(ledger: Any, *args: Any, **named: Any) -> Any:
            if next(calls) != point.number:
                return real(ledger, *args, **named)
            if point.moment is Moment.BEFORE:
                _die()
            if point.moment is Moment.INSIDE:
                ledger._store = _DyingStore(ledger._store)
            result = real(ledger, *args, **named)
            _die()
            return result

        setattr(SqlLedger, point.method, method)
    try:
        serve(config)
    except FairtrialError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["tests.world.killed_meter", "controller.adapters.ledger_postgres", "controller.proxy.serve"]
)


class KilledMeter:
    """A meter at a socket, which may have a point to die at."""

    def __init__(self, config: Path, socket: Path, point: KillPoint | None = None) -> None:
        self.socket = socket
        self.process = FORKS.Process(target=_serve, args=(config, point))
        self.process.start()

    def wait_ready(self) -> None:
        """Return once it answers that it is healthy. Raises AssertionError when it dies first."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            assert self.process.is_alive(), f"the meter ended with {self.process.exitcode}"
            try:
                if call(self.socket, "GET", "/healthz").status == 200:
                    return
            except OSError:
                time.sleep(0.01)
        raise AssertionError("the meter did not become ready")

    def exit_code(self) -> int | None:
        """Wait for its end; negative for a signal."""
        self.process.join(START_SECONDS_MAX)
        return self.process.exitcode

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(START_SECONDS_MAX)
        self.process.close()
