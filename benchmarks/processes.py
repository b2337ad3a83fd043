"""Child processes of a benchmark, and what the kernel says they cost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
END_SECONDS_MAX = 30.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, to one clock tick (usually 10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


def resident_bytes(pid: int) -> int:
    """The resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


@contextlib.contextmanager
def child(
    argv: Sequence[str], log: Path, *, speaks: bool = False, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block: SIGTERM, then SIGKILL.

    Its stderr goes to the file, and so does its stdout, unless it `speaks`: then stdout is a pipe.
    """
    with log.open("ab") as file:
        process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE if speaks else file,
            stderr=file,
            cwd=Path(__file__).parents[1],
            env=environment,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def wait_for(ready: Callable[[], bool], seconds: float, *, process: subprocess.Popen[bytes]) -> bool:
    """Poll until `ready()` is true; False when the process ended or the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if ready():
            return True
        time.sleep(0.1)
    return False
