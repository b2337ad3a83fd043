"""A provider that plays bytes: what it sends, how it cuts them and how it breaks off are all written down."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tests.world.loopback import Loopback

PATIENCE_SECONDS = 30.0
HEAD_BYTES_MAX = 2**20


class Act(Enum):
    """What a play does besides sending."""

    HOLD = "wait until the test lets go"
    RESET = "tear the connection down, so that the peer is told of a failure"
    CLOSE = "close the connection in good order"


Play = Sequence[bytes | Act]


def head(status: str = "200 OK", **headers: str) -> bytes:
    """A response head. Underscores in names stand for hyphens."""
    named = {"Content_Type": "text/event-stream"} | headers
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty, it is the end."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def chunked(body: bytes, *, size: int = 2**16, **headers: str) -> list[bytes]:
    """A whole answer in chunks of `size` bytes."""
    parts = [chunk(body[start : start + size]) for start in range(0, len(body), size)]
    return [head(Transfer_Encoding="chunked", **headers), *parts, chunk(b"")]


def sized(body: bytes, **headers: str) -> list[bytes]:
    """A whole answer of a stated length."""
    return [head(Content_Length=str(len(body)), **({"Content_Type": "application/json"} | headers)), body]


@dataclass
class WireUpstream:
    """Plays `plays[key]`, where the key is the credential that it is shown; counts and announces what it read."""

    plays: dict[str, Play] = field(default_factory=dict)
    requests: int = 0
    hold: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __enter__(self) -> WireUpstream:
        upstream = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                upstream._serve(self.request)

        self._server = Loopback(Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.stop()

    @property
    def url(self) -> str:
        """The base URL."""
        return self._server.url

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_SECONDS)
        with contextlib.suppress(OSError):  # the meter left, which is its right
            while (key := self._request(connection)) is not None:
                self.requests += 1
                self.arrived.release()
                if not self._play(connection, self.plays[key]):
                    return

    def _request(self, connection: socket.socket) -> str | None:
        """The credential of the next request, whose body is read and dropped; None when there is none."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            part = connection.recv(2**16)
            if not part or len(raw) > HEAD_BYTES_MAX:
                return None
            raw += part
        top, _, body = raw.partition(b"\r\n\r\n")
        lines = (line.partition(":") for line in top.decode("latin-1").split("\r\n")[1:])
        headers = {name.lower(): value.strip() for name, _, value in lines}
        left = int(headers.get("content-length", "0")) - len(body)
        while left > 0:
            left -= len(connection.recv(min(left, 2**16)) or b"\0" * left)
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def _play(self, connection: socket.socket, play: Play) -> bool:
        """Whether the connection may carry another answer."""
        for step in play:
            if step is Act.HOLD:
                self.hold.wait(PATIENCE_SECONDS)
            elif step is Act.RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                return False
            elif step is Act.CLOSE:
                connection.shutdown(socket.SHUT_RDWR)
                return False
            else:
                connection.sendall(step)
        return True
