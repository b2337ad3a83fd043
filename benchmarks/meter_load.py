"""A load generator as a process: streaming requests over kept connections, closed loop, bounded in number and time.

Reads a `Load` as JSON on stdin and prints a `Measured` as JSON on stdout.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

import uvloop

EVENT = b"data: "
END = b"\r\n0\r\n\r\n"
FAULT_BYTES_MAX = 300


@dataclass(frozen=True)
class Load:
    """What to ask, of whom. Each client sends one request for each of its tokens, one after the other."""

    address: str  # unix:PATH or HOST:PORT
    path: str
    tokens: list[list[str]]  # by client
    chunks: int  # events per answer, the last ones included
    interval_us: int  # between events
    body_bytes: int
    start_interval_us: int  # between the starts of two clients
    seconds_max: float


@dataclass(frozen=True)
class Measured:
    """What came back. `first_byte_ms` is the wait for the first byte of the first event, for each request in order."""

    first_byte_ms: list[float]
    answers: int
    events: int
    faults: list[str]
    seconds: float


class Client(asyncio.Protocol):
    """One connection and its requests."""

    def __init__(self, load: Load, tokens: list[str], done: asyncio.Future[None]) -> None:
        self._load = load
        self._tokens = list(reversed(tokens))
        self._done = done
        self.first_byte_ms: list[float] = []
        self.events = self.answers = 0
        self.fault = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        if not self._tokens:
            self._end()
            return
        self._head = bytearray()
        self._in_body, self._waiting = False, True
        self._tail = b""
        request = _request(self._load, self._tokens.pop())
        self._asked_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._head += data
            head, end, data = bytes(self._head).partition(b"\r\n\r\n")
            if not end:
                return
            if not head.startswith(b"HTTP/1.1 200 "):
                self.fault = bytes(self._head[-FAULT_BYTES_MAX:]).decode(errors="replace")
                self._end()
                return
            self._in_body = True
        if not data:
            return
        if self._waiting:
            self._waiting = False
            self.first_byte_ms.append((time.perf_counter() - self._asked_at) * 1e3)
        seen = self._tail + data
        # A marker that a boundary cut is counted with its second half; one in the kept tail was counted before.
        self.events += seen.count(EVENT) - self._tail.count(EVENT)
        if seen.endswith(END):
            self.answers += 1
            self._ask()
        else:
            self._tail = seen[-len(END) :]

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self.fault = self.fault or f"the connection was lost: {error}"
            self._end()

    def _end(self) -> None:
        if not self._done.done():
            self._done.set_result(None)
        self._transport.close()


def _request(load: Load, token: str) -> bytes:
    asked = f"chunks={load.chunks} interval_us={load.interval_us} "
    text = asked + "a line of code\n" * max(0, (load.body_bytes - 300) // 16)
    body: dict[str, object] = {"model": "rehearsal-1", "stream": True}
    if load.path.endswith("/responses"):
        body |= {"input": text, "max_output_tokens": 100, "store": False}
    else:
        body |= {"messages": [{"role": "user", "content": text}], "max_tokens": 100}
    if load.path.endswith("/chat/completions"):
        body["stream_options"] = {"include_usage": True}
    raw = json.dumps(body).encode()
    head = (
        f"POST {load.path} HTTP/1.1\r\nHost: meter\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


async def _run(load: Load) -> Measured:
    loop = asyncio.get_running_loop()
    began = loop.time()
    clients, ends = [], []
    for number, tokens in enumerate(load.tokens):
        await asyncio.sleep(began + number * load.start_interval_us / 1e6 - loop.time())
        done: asyncio.Future[None] = loop.create_future()
        client = Client(load, tokens, done)
        if load.address.startswith("unix:"):
            await loop.create_unix_connection(lambda made=client: made, load.address[5:])  # type: ignore[misc]
        else:
            host, _, port = load.address.rpartition(":")
            await loop.create_connection(lambda made=client: made, host, int(port))  # type: ignore[misc]
        clients.append(client)
        ends.append(done)
    _, late = await asyncio.wait(ends, timeout=load.seconds_max)
    faults = [client.fault for client in clients if client.fault]
    return Measured(
        first_byte_ms=[round(ms, 3) for client in clients for ms in client.first_byte_ms],
        answers=sum(client.answers for client in clients),
        events=sum(client.events for client in clients),
        faults=faults + ["out of time"] * len(late),
        seconds=round(loop.time() - began, 3),
    )


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(_run(Load(**json.load(sys.stdin)))))))
