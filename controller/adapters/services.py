"""The long-running processes of a round: started detached, found again by a controller that restarts, ended by name.

They outlive a killed controller on purpose, so that an attempt in flight is metered to its end and can be adopted; each
runs under `timeout`, so none outlives its lifetime.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from controller.errors import ControllerFault, MachineUnsupported, MissingProgram, PortOccupied

START_SECONDS_MAX: Final = 60.0  # Envoy needs 3 s on an idle machine; an emulated guest may hold both processors
STOP_SECONDS_MAX: Final = 15.0
POLL_SECONDS: Final = 0.1
PROBE_SECONDS: Final = 2.0
HEALTH_BYTES_MAX: Final = 4096


class Service:
    """One named process with a pid file. `ready` is asked until it answers True."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        directory: Path,
        lifetime_seconds: int,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._argv = tuple(argv)
        self._record = directory / f"{name}.json"
        self._log = directory / f"{name}.log"
        self._lifetime_seconds = lifetime_seconds
        self._ready = ready
        self._environment = dict(environment or {})

    def start(self) -> None:
        """Adopt the running process, or start one and wait until it is ready.

        Raises PortOccupied when a process that is not ours answers already, MachineUnsupported with the end of its log.
        """
        if self.alive() and self._ready():
            return
        self.stop()
        if self._ready():  # else its answers would pass for those of the process that we start
            raise PortOccupied(f"where the service {self.name} would listen, another process answers")
        argv = ["timeout", "--kill-after=10", str(self._lifetime_seconds), *self._argv]
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        try:
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env={**keep, **self._environment},
                )
        except FileNotFoundError as error:
            raise MissingProgram(f"the service {self.name} needs the program {error.filename}") from error
        self._record.write_text(json.dumps({"pid": process.pid, "started": _start_ticks(process.pid)}))
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._ready():
                return
            if process.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        tail = self._log.read_text(errors="replace")[-600:]
        self.stop()
        raise MachineUnsupported(
            f"the service {self.name} did not become ready; the end of {self._log}:\n{tail}",
            remedy="Read the log named above; a full disk or an occupied address is the usual cause.",
        )

    def alive(self) -> bool:
        """True when the recorded process still runs and is the one we started, not a recycled pid."""
        record = self._read()
        return record is not None and _start_ticks(record[0]) == record[1]

    def stop(self) -> None:
        """End the process and its children. Succeeds when there is none."""
        record = self._read()
        if record is None:
            return
        pid, started = record
        for number, patience in ((signal.SIGTERM, STOP_SECONDS_MAX), (signal.SIGKILL, STOP_SECONDS_MAX)):
            if _start_ticks(pid) != started:
                break
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + patience
            while _start_ticks(pid) == started and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            _reap(pid)
        if _start_ticks(pid) == started:
            raise ControllerFault(f"the service {self.name} (pid {pid}) does not end")
        self._record.unlink(missing_ok=True)

    def _read(self) -> tuple[int, int] | None:
        try:
            record = json.loads(self._record.read_text())
            return int(record["pid"]), int(record["started"])
        except (FileNotFoundError, ValueError, KeyError):
            return None


def healthy(path: Path) -> bool:
    """Whether `GET /healthz` over the Unix socket answers 200."""
    try:
        return health(path).startswith((b"HTTP/1.1 200", b"HTTP/1.0 200"))
    except OSError:
        return False


def health(path: Path) -> bytes:
    """A service's whole answer to `GET /healthz`, which is short. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PROBE_SECONDS)
        link.connect(str(path))
        link.sendall(b"GET /healthz HTTP/1.1\r\nHost: fairtrial\r\nConnection: close\r\n\r\n")
        answer = b""
        while len(answer) < HEALTH_BYTES_MAX and (part := link.recv(HEALTH_BYTES_MAX)):
            answer += part
        return answer


def _start_ticks(pid: int) -> int | None:
    """The kernel's start time of a live process; None when there is none (zombies count as none)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
