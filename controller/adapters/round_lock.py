"""One controller per round: an advisory lock that the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.errors import PortOccupied


@contextmanager
def round_lock(round_dir: Path) -> Iterator[None]:
    """Hold the round. Raises PortOccupied naming the process that holds it."""
    path = round_dir / "controller.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise PortOccupied(
                f"round {round_dir.name} is being conducted by process {holder} ({path})",
                remedy="Watch it with `fairtrial watch ROUND`, or stop it with `fairtrial stop ROUND`.",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
