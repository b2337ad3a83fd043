"""A witness on the wire: relays a loopback port to a service and keeps every byte that a client sent."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from dataclasses import dataclass, field
from pathlib import Path

import h11

from tests.world.loopback import Loopback

CHUNK_BYTES = 2**16


@dataclass(frozen=True)
class Sent:
    """One HTTP request as it crossed the wire, whole."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass
class Tap:
    """Listens on 127.0.0.1; `target` is a Unix socket's path or a port of the same host."""

    target: Path | int
    _streams: list[bytearray] = field(default_factory=list)

    def __enter__(self) -> Tap:
        tap = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                tap._relay(self.request)

        self._server = Loopback(Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """The base URL."""
        return self._server.url

    def forget(self) -> None:
        """Begin again: what later arrives on a connection that is open now is not kept."""
        self._streams.clear()

    def requests(self, method: str | None = None) -> list[Sent]:
        """Every whole request so far, or those of one method, connection by connection."""
        found = [sent for stream in list(self._streams) for sent in _requests_in(bytes(stream))]
        return [sent for sent in found if method in (None, sent.method)]

    def _relay(self, near: socket.socket) -> None:
        stream = bytearray()
        self._streams.append(stream)
        with contextlib.closing(self._connected()) as far:
            back = threading.Thread(target=_pump, args=(far, near, None), daemon=True)
            back.start()
            _pump(near, far, stream)
            back.join()

    def _connected(self) -> socket.socket:
        if isinstance(self.target, int):
            return socket.create_connection(("127.0.0.1", self.target))
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        far.connect(str(self.target))
        return far


class Trap:
    """Stands where a proxy to everywhere would: it keeps the first line of what asks for the way out, and hangs up."""

    def __enter__(self) -> Trap:
        self.caught: list[bytes] = []
        caught = self.caught

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                caught.append(self.rfile.readline(200))

        self._server = Loopback(Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make a client send here whatever is not for this host."""
        url = self._server.url
        ways = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": "127.0.0.1,localhost"}
        return ways | {name.lower(): value for name, value in ways.items()}


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
    """Copy until the source ends; an abortive end is passed on as an end."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            if kept is not None:
                kept += data
            sink.sendall(data)
    for side, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            side.shutdown(how)


def _requests_in(stream: bytes) -> list[Sent]:
    """The whole requests of one connection, in order."""
    server, found = h11.Connection(h11.SERVER), []
    server.receive_data(stream)
    head: h11.Request | None = None
    body = b""
    while True:
        event = server.next_event()
        if isinstance(event, h11.Request):
            head, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = {name.decode().lower(): value.decode() for name, value in head.headers}
            found.append(Sent(head.method.decode(), head.target.decode(), headers, body))
            # The parser goes on to the next request only after an answer to this one; any will do.
            server.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            server.send(h11.EndOfMessage())
            if server.our_state is not h11.DONE:
                return found
            server.start_next_cycle()
        else:
            return found
