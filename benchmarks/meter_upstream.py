"""A provider for load tests, as a process: it streams as many events at such a pace as the prompt asks for.

Prints its port on stdout. One event is one write, so that a proxy sees the chunks one by one as a model makes them.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import uvloop

ASKED = re.compile(rb"chunks=(\d{1,7}) interval_us=(\d{1,8})")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,9})\r\n", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MODEL = b"rehearsal-1"
WORD = b"x" * 24


def _chat(message: bytes) -> tuple[bytes, bytes, list[bytes]]:
    head = b'data: {"id":"%b","object":"chat.completion.chunk","created":1700000000,"model":"%b",' % (message, MODEL)
    delta = head + (
        b'"service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":"%b"},'
        b'"logprobs":null,"finish_reason":null}],"usage":null}\n\n' % WORD
    )
    usage = head + (
        b'"service_tier":"default","choices":[],"usage":{"prompt_tokens":300,"completion_tokens":40,'
        b'"total_tokens":340}}\n\n'
    )
    return delta, delta, [usage, b"data: [DONE]\n\n"]


def _messages(message: bytes) -> tuple[bytes, bytes, list[bytes]]:
    start = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"%b","type":"message","role":"assistant",'
        b'"model":"%b","content":[],"usage":{"input_tokens":300,"output_tokens":1}}}\n\n' % (message, MODEL)
    )
    delta = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        b'"text":"%b"}}\n\n' % WORD
    )
    end = (
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
        b'"usage":{"output_tokens":40}}\n\n'
    )
    return start, delta, [end, b'event: message_stop\ndata: {"type":"message_stop"}\n\n']


def _responses(message: bytes) -> tuple[bytes, bytes, list[bytes]]:
    delta = (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":7,'
        b'"item_id":"msg_0","output_index":0,"content_index":0,"delta":"%b"}\n\n' % WORD
    )
    end = (
        b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"%b","model":"%b",'
        b'"status":"completed","usage":{"input_tokens":300,"output_tokens":40,"total_tokens":340}}}\n\n'
        % (message, MODEL)
    )
    return delta, delta, [end]


DIALECTS = {b"/v1/chat/completions": _chat, b"/v1/messages": _messages, b"/v1/responses": _responses}


def _framed(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


class Answering(asyncio.Protocol):
    """One connection; requests one after the other."""

    answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_bytes = self._received.find(b"\r\n\r\n") + 4
        if head_bytes < 4:
            return
        length = LENGTH.search(self._received, 0, head_bytes)
        if length is None:
            self._transport.abort()
        elif len(self._received) >= head_bytes + int(length[1]):
            request, self._received = bytes(self._received), bytearray()
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        asked = ASKED.search(request)
        path = request.split(b" ", 2)[1].partition(b"?")[0]
        if asked is None or path not in DIALECTS:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        Answering.answers += 1
        first, delta, last = DIALECTS[path](b"msg_%d" % Answering.answers)
        self._delta = _framed(delta)
        self._last = [_framed(event) for event in last]
        self._left = max(0, int(asked[1]) - 1 - len(last))
        self._interval = int(asked[2]) / 1e6
        self._due = self._loop.time()
        self._transport.write(HEAD + _framed(first))
        self._next()

    def _next(self) -> None:
        self._due += self._interval
        self._timer = self._loop.call_at(self._due, self._step)

    def _step(self) -> None:
        if self._left:
            self._left -= 1
            self._transport.write(self._delta)
            self._next()
        elif self._last:
            self._transport.write(self._last.pop(0))
            self._next()
        else:
            self._transport.write(b"0\r\n\r\n")

    def pause_writing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def resume_writing(self) -> None:
        self._due = self._loop.time()
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(uvloop.run(_serve()))
