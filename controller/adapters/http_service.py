"""An aiohttp application on a Unix socket as a process of its own: one instance, ready line, drain on SIGTERM."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import structlog
import uvloop
from aiohttp import web
from structlog.typing import ExcInfo

from controller.domain.json_files import parse_record
from controller.domain.record import Record
from controller.errors import FairtrialError, InvalidInput, PortOccupied
from controller.ports.named_files import read_named

SOCKET_PATH_BYTES_MAX: Final = 107  # the kernel's sockaddr_un
IDLE_CONNECTION_SECONDS: Final = 3600.0  # longer than any proxy in front keeps one, so that we never close first
R = TypeVar("R", bound=Record)


class Stop:
    """Why and when the service ends; `fail` makes the process exit with that error once it has drained."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.error: FairtrialError | None = None

    def fail(self, error: FairtrialError) -> None:
        """Begin to stop because of an error; the first one is kept."""
        self.error = self.error or error
        self._event.set()

    def set(self) -> None:
        """Begin to stop."""
        self._event.set()

    async def wait(self) -> None:
        """Return once the service should stop."""
        await self._event.wait()


def run_service(build: Callable[[Stop], Awaitable[web.Application]], *, socket: Path, drain_seconds: float) -> None:
    """Serve until SIGTERM, SIGINT or `Stop.fail`, then let running requests end for at most `drain_seconds`.

    Prints `{"ready": true}` on stdout when it listens. Raises PortOccupied when another process serves the socket.
    """
    if len(os.fsencode(socket)) > SOCKET_PATH_BYTES_MAX:
        raise InvalidInput(f"{socket}: a socket path may have at most {SOCKET_PATH_BYTES_MAX} bytes")
    _log_to_stderr()
    with _only_instance(socket), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(build, socket, drain_seconds))


async def _serve(build: Callable[[Stop], Awaitable[web.Application]], socket: Path, drain_seconds: float) -> None:
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    application = await build(stop)
    # The handler must outlive its client (an answer is drained whoever left), and bodies must stay as they were sent.
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=False,
        auto_decompress=False,
        keepalive_timeout=IDLE_CONNECTION_SECONDS,
        shutdown_timeout=drain_seconds,
    )
    await runner.setup()
    try:
        site = web.UnixSite(runner, _vacant(socket))
        await site.start()
        _private(socket)
        sys.stdout.write(json.dumps({"ready": True}) + "\n")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await runner.cleanup()
    if stop.error is not None:
        raise stop.error


def _vacant(socket: Path) -> Path:
    """The path, without the socket that a killed process left there."""
    socket.unlink(missing_ok=True)
    return socket


def _private(socket: Path) -> None:
    socket.chmod(0o600)


@contextmanager
def _only_instance(socket: Path) -> Iterator[None]:
    """Hold a lock beside the socket, so that two processes never believe they own the same ledger."""
    lock = os.open(f"{socket}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PortOccupied(f"{socket}: another process serves this socket") from None
        yield
        socket.unlink(missing_ok=True)
    finally:
        os.close(lock)


def places(exc_info: ExcInfo) -> list[str]:
    """Where an exception came from, and its kind: not its words, which may hold what a client sent."""
    kind, _, trace = exc_info
    return [*(f"{at.filename}:{at.lineno} {at.name}" for at in traceback.extract_tb(trace)), kind.__name__]


class ForeignLog(logging.Handler):
    """What libraries log, in our form and without their words.

    Those quote what a client sent: the HTTP parser shows a malformed header, with the run token in it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Log which library complained, and where."""
        structlog.get_logger().log(record.levelno, "library", library=record.name, exc_info=record.exc_info)


def _log_to_stderr() -> None:
    logging.basicConfig(handlers=[ForeignLog()], level=logging.WARNING, force=True)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(places),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def read_record(path: Path, kind: type[R]) -> R:
    """A record from a JSON file. Raises InvalidInput naming the file and every wrong field."""
    try:
        data = read_named(path)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
    return parse_record(data, kind, str(path), floats=True)
