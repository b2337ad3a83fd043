"""Start the harness, read what it prints into a bounded log, end it at the deadline, and leave no process behind."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time

CHUNK_BYTES = 1 << 16
POLL_SECONDS = 0.25
OOM_SCORE = "500"  # the kernel takes the harness before the shim


class BoundedLog:
    """The first and the last half of what came, when it was more than `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self._half = max(0, bytes_max // 2 - 64)
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    @property
    def is_truncated(self) -> bool:
        return self._dropped > 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(0, room) :]
        excess = len(self._tail) - self._half
        if excess > self._half:  # in large steps, so that every byte is moved about once
            del self._tail[:excess]
            self._dropped += excess

    def data(self) -> bytes:
        """The log, with one line where something was left out."""
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess
        gap = f"\n[fairtrial: {self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return bytes(self._head) + gap + bytes(self._tail)


def become(uid: int, oom_score: str | None = None) -> None:
    """Give up root for good, in a child."""
    if oom_score is not None:
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write(oom_score)
        except OSError:
            pass  # an engine that forbids it leaves the kernel's own choice
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def start(argv: list[str], env: dict[str, str], *, uid: int, directory: str, stdin: bytes) -> tuple[int, int]:
    """Start the harness in a session of its own. Returns its pid and the descriptor of everything it prints."""
    source = os.memfd_create("stdin")
    os.write(source, stdin)
    os.lseek(source, 0, os.SEEK_SET)
    output, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for target, fd in enumerate((source, sink, sink)):
                os.dup2(fd, target)
            os.closerange(3, 4096)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            become(uid, OOM_SCORE)
            os.umask(0o022)
            os.chdir(directory)
            os.execvpe(argv[0], argv, env)  # noqa: S606
        except BaseException as error:  # whatever happens, this child must not run the shim's code
            os.write(2, f"fairtrial: {argv[0]}: {error}\n".encode())
        finally:
            os._exit(127)
    os.close(source)
    os.close(sink)
    return pid, output


def watch(pid: int, output: int, log: BoundedLog, *, seconds: float) -> tuple[int | None, dict[int, int]]:
    """Wait for the harness at most `seconds`, reading all it prints and burying every orphan.

    Returns its exit code (128 + signal for a killed one; None when the time is over), and the codes of other children.
    """
    deadline = time.monotonic() + seconds
    buried: dict[int, int] = {}
    wakeup, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    before = signal.set_wakeup_fd(waker)
    os.set_blocking(output, False)
    sources = [output, wakeup]
    try:
        while True:
            bury(buried)
            if pid in buried:
                return buried.pop(pid), buried
            left = deadline - time.monotonic()
            if left <= 0:
                return None, buried
            ready, _, _ = select.select(sources, [], [], min(left, POLL_SECONDS))
            if wakeup in ready:
                os.read(wakeup, CHUNK_BYTES)
            if output in ready and not drain(output, log, chunks_max=16):
                sources.remove(output)
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(wakeup)
        os.close(waker)


def drain(output: int, log: BoundedLog, *, chunks_max: int) -> bool:
    """Read what is there, at most `chunks_max` chunks. False at the end of the pipe."""
    for _ in range(chunks_max):
        try:
            data = os.read(output, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        log.add(data)
    return True


def bury(buried: dict[int, int]) -> bool:
    """Reap every dead child into `buried`. False when there is no child left, dead or alive."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        buried[pid] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def kill_everyone(seconds: float) -> bool:
    """Kill every other process of this process namespace, until none is left. Only PID 1 of a container may call it.

    The kernel signals all of them in one pass, and a process that forks meanwhile carries the signal with it.
    """
    if os.getpid() != 1:
        raise RuntimeError("only the first process of a container may kill all others")
    deadline = time.monotonic() + seconds
    buried: dict[int, int] = {}
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        if not bury(buried):
            return True
        time.sleep(0.01)
    return False
