"""Relays of drand on the loopback interface: honest ones, and ones that do everything a relay must not."""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from tests.world.loopback import Loopback

Play = Callable[[socket.socket, threading.Event], None]  # writes an answer; the event is set when the test is over


def says(
    body: bytes | dict[str, Any], *, status: str = "200 OK", headers: Sequence[str] = (), length: bool = True
) -> Play:
    """Answer with that body, an object as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "Connection: close", *headers]
    if length:
        lines.append(f"Content-Length: {len(data)}")

    def play(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)

    return play


def raw(data: bytes) -> Play:
    """Answer with bytes that need not be HTTP."""
    return lambda connection, over: connection.sendall(data)


def silent(begin: bytes = b"") -> Play:
    """Say the beginning and then nothing, without closing."""

    def play(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(begin)
        over.wait(30)

    return play


def drips(data: bytes) -> Play:
    """One byte now and then: no single wait is long, the whole never ends."""

    def play(connection: socket.socket, over: threading.Event) -> None:
        for byte in data:
            connection.sendall(bytes([byte]))
            if over.wait(0.05):
                return

    return play


class Relay:
    """One relay on a loopback address of its own. `paths` are what it was asked for."""

    def __init__(self, number: int, play: Play, tls: ssl.SSLContext | None = None) -> None:
        paths: list[str] = []
        over = threading.Event()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):  # the client has left, as it should
                    if tls is not None:
                        self.request = tls.wrap_socket(self.request, server_side=True)
                    head = b""
                    while b"\r\n\r\n" not in head:
                        piece = self.request.recv(4096)
                        if not piece:
                            return
                        head += piece
                    paths.append(head.split(b" ")[1].decode())
                    play(self.request, over)

        self.paths = paths
        self._over = over
        self._server = Loopback(Handler, f"127.0.0.{number}")

    @property
    def url(self) -> str:
        return self._server.url

    def stop(self) -> None:
        self._over.set()
        self._server.stop()


@contextmanager
def relays(*plays: Play) -> Iterator[list[Relay]]:
    """A relay per play, on addresses that count as different sites."""
    with ExitStack() as stack:
        started = [Relay(number, play) for number, play in enumerate(plays, start=1)]
        for one in started:
            stack.callback(one.stop)
        yield started
