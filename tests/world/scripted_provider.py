"""A provider whose answers the official clients parse, and which fails in the ways that providers fail.

The shapes of answers are the rehearsal model's; a test says how each of the next requests ends.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal, Protocol

from controller.adapters.rehearsal.anthropic import AnthropicMessages
from controller.adapters.rehearsal.conversation import Json, Reply, TokenCount
from controller.adapters.rehearsal.openai_chat import OpenAIChat
from controller.adapters.rehearsal.openai_responses import OpenAIResponses
from tests.world.gemini_shapes import GeminiShapes
from tests.world.loopback import Loopback
from tests.world.prefix_cache import PrefixCache

# How one request ends. A status is an error answer; "reset" comes before the headers, "cut" in the middle of an event,
# "error body" and "error event" after a 200; "silence" begins before the headers and "pause" between two events.
Fate = Literal[
    "ok", "429", "500", "529", "reset", "cut", "error body", "error event", "same id", "silence", "pause", "held"
]
TOKENS = TokenCount(uncached=3000, cache_read=2000, cache_write=1000, output=400)
TEXT = "The sign is wrong.\u2028It is corrected now."
RETRY_HEADERS = {"retry-after": "1", "retry-after-ms": "20"}  # clients that know the second one wait less
PATIENCE_SECONDS = 60.0


class Shapes(Protocol):
    """How one dialect writes an answer; see `rehearsal.conversation.Dialect`."""

    def whole(self, reply: Reply) -> Json: ...
    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]: ...
    def failure(self, status: int, message: str, *, request_id: str) -> Json: ...


SHAPES: dict[str, Shapes] = {
    "/v1/messages": AnthropicMessages(),
    "/v1/chat/completions": OpenAIChat(),
    "/v1/responses": OpenAIResponses(),
}


@dataclass(frozen=True)
class Received:
    """One request as the provider saw it; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedProvider:
    """All dialects on one loopback port. `play` names the fates of the next requests; later ones go well.

    With `caching`, usage follows from a simulated prefix cache; otherwise every answer reports `TOKENS`.
    """

    caching: bool = False
    received: list[Received] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    cache: PrefixCache = field(default_factory=PrefixCache)
    _fates: deque[Fate] = field(default_factory=deque)
    _replies: int = 0
    _held_id: int = 0  # what "same id" repeats
    _seconds: float = PATIENCE_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> ScriptedProvider:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                with contextlib.suppress(OSError):
                    provider._answer(self)

            def log_message(self, *_: object) -> None:
                """Keep the test output quiet."""

        class Server(Loopback):
            def shutdown_request(self, request: Any) -> None:
                # Without the orderly shutdown first: a socket that does not linger is then reset.
                self.close_request(request)

            def handle_error(self, *_: object) -> None:
                """A client that left is not an error."""

        self._server = Server(Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.stop()

    @property
    def url(self) -> str:
        """The base URL."""
        return self._server.url

    def play(self, *fates: Fate, seconds: float = PATIENCE_SECONDS) -> None:
        """Forget what was received, and let the next requests end so; a silence or a pause lasts `seconds`."""
        self._seconds = seconds
        self._held_id = self._replies + 1
        self.received.clear()
        self.reached.clear()
        self.release.clear()
        self._fates = deque(fates)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        path = handler.path.partition("?")[0]
        with self._lock:
            self.received.append(Received(handler.path, headers, body))
            fate: Fate = self._fates.popleft() if self._fates else "ok"
            self._replies += 1
            number = self._held_id if fate == "same id" else self._replies
        self.reached.set()
        if fate in ("held", "silence"):
            self.release.wait(self._seconds)
        if fate == "reset":
            _reset(handler)
            return
        request = json.loads(body)
        if path.endswith((":countTokens", "count_tokens")):
            _send(handler, 200, {"input_tokens" if path.endswith("count_tokens") else "totalTokens": 17})
            return
        shapes = SHAPES.get(path, GeminiShapes())
        if fate.isdigit() or fate == "error body":
            status = int(fate) if fate.isdigit() else 500
            failure = shapes.failure(status, "scripted failure", request_id="req_scripted")
            _send(handler, status if fate.isdigit() else 200, failure, RETRY_HEADERS)
            return
        streamed = request.get("stream") is True or path.endswith(":streamGenerateContent")
        reply = self._reply(path, headers, request, number)
        if streamed:
            options = request.get("stream_options") or {}
            frames = shapes.stream(reply, include_usage=options.get("include_usage") is True)
            self._stream(handler, list(frames), fate, shapes)
        else:
            self._whole(handler, shapes.whole(reply), fate)

    def _reply(self, path: str, headers: dict[str, str], request: dict[str, Any], number: int) -> Reply:
        tokens = self.cache.count(path, headers, request, output=400) if self.caching else TOKENS
        model = request.get("model") or path.partition("/models/")[2].partition(":")[0]
        return Reply(f"{number:024x}", "0" * 24, model, TEXT, None, tokens)

    def _whole(self, handler: BaseHTTPRequestHandler, payload: dict[str, Any], fate: Fate) -> None:
        raw = json.dumps(payload).encode()
        _head(handler, 200, {"Content-Type": "application/json", "Content-Length": str(len(raw))})
        if fate == "pause":
            self.release.wait(self._seconds)
        handler.wfile.write(raw[: len(raw) // 2] if fate == "cut" else raw)
        if fate == "cut":
            _reset(handler)

    def _stream(self, handler: BaseHTTPRequestHandler, frames: list[bytes], fate: Fate, shapes: Shapes) -> None:
        _head(handler, 200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for position, frame in enumerate(frames):
            if position == len(frames) // 2:
                if fate == "pause":
                    self.release.wait(self._seconds)
                if fate == "cut":
                    _chunk(handler, frame[: len(frame) // 2])
                    _reset(handler)
                    return
                if fate == "error event":
                    for part in _error_event(shapes):
                        _chunk(handler, part)
                    break
            _chunk(handler, frame)
        handler.wfile.write(b"0\r\n\r\n")


def _error_event(shapes: Shapes) -> Iterator[bytes]:
    failure = shapes.failure(529, "scripted failure", request_id="req_scripted")
    if isinstance(shapes, OpenAIResponses):
        failure = {"type": "error", "code": "server_error", "message": "scripted failure", "param": None}
    name = "event: error\n" if failure.get("type") == "error" else ""
    yield f"{name}data: {json.dumps(failure)}\n\n".encode()


def _chunk(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.wfile.flush()


def _head(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in ({"request-id": "req_scripted", "x-request-id": "req_scripted"} | headers).items():
        handler.send_header(name, value)
    handler.end_headers()


def _send(
    handler: BaseHTTPRequestHandler, status: int, payload: dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    raw = json.dumps(payload).encode()
    _head(handler, status, {"Content-Type": "application/json", "Content-Length": str(len(raw))} | (headers or {}))
    handler.wfile.write(raw)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """Let the connection end with a reset once the handler returns."""
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
