"""A provider small enough to script: it answers by the name of the key it is shown, and remembers what it received."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.world.loopback import Loopback

USAGE = {"input_tokens": 3000, "output_tokens": 400}
PATIENCE_SECONDS = 30.0


@dataclass
class Received:
    """One request as the provider saw it."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedUpstream:
    """Anthropic, Chat and Responses answers on a loopback port. `hold` stops every answer marked as held."""

    received: list[Received] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    hold: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    message_ids: int = 0

    def __enter__(self) -> ScriptedUpstream:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                upstream.answer(self)

            def log_message(self, *_: object) -> None:
                """Keep the test output quiet."""

        self._server = Loopback(Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.stop()

    def forget(self) -> None:
        """Begin again for another test; message ids go on, since a provider never repeats one."""
        self.received.clear()
        for event in (self.reached, self.hold, self.finished):
            event.clear()

    @property
    def url(self) -> str:
        """The base URL."""
        return self._server.url

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Play the script that the shown key names: words joined by `+`."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.received.append(Received(handler.path, dict(handler.headers.items()), body))
        key = handler.headers.get("x-api-key") or handler.headers.get("Authorization", "").removeprefix("Bearer ")
        script = set(key.split("+"))
        self.reached.set()
        if "held" in script:
            self.hold.wait(PATIENCE_SECONDS)
        for word in script:
            if word.isdigit():
                self._send(handler, int(word), {"type": "error", "error": {"type": "scripted", "message": word}})
                return
        request = json.loads(body)
        if request.get("stream"):
            self._stream(handler, request, script)
        else:
            encoding = "gzip" if "gzip" in script else None
            self._send(handler, 200, self._whole(handler.path, request, script), encoding=encoding)
        self.finished.set()

    def _model(self, request: dict[str, Any], script: set[str]) -> str:
        return "someone-else" if "other-model" in script else str(request["model"])

    def _message_id(self, script: set[str]) -> str:
        self.message_ids += 1
        return "msg_same" if "same-id" in script else f"msg_{self.message_ids}"

    def _whole(self, path: str, request: dict[str, Any], script: set[str]) -> dict[str, Any]:
        if path.endswith("count_tokens"):
            return {"input_tokens": 17}
        answer: dict[str, Any] = {"id": self._message_id(script), "model": self._model(request, script)}
        if "/messages" in path:
            return answer | {"type": "message", "content": [{"type": "text", "text": "hi"}], "usage": USAGE}
        if path.endswith("/responses"):
            return answer | {"status": "completed", "usage": USAGE}
        usage = {"prompt_tokens": 3000, "completion_tokens": 400}
        return answer | {"choices": [{"message": {"content": "hi"}}], "usage": usage}

    def _stream(self, handler: BaseHTTPRequestHandler, request: dict[str, Any], script: set[str]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Set-Cookie", "a=b")
        handler.send_header("request-id", "req_from_provider")
        handler.end_headers()
        frames = self._frames(handler.path, request, script)
        for position, frame in enumerate(frames):
            if position == len(frames) // 2:
                if "stall" in script:
                    self.hold.wait(PATIENCE_SECONDS)
                if "truncate" in script:
                    handler.close_connection = True
                    return
            handler.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    def _frames(self, path: str, request: dict[str, Any], script: set[str]) -> list[bytes]:
        message, model = self._message_id(script), self._model(request, script)
        count = 20_000 if "flood" in script else 200 if "long" in script else 4
        events: list[tuple[str, dict[str, Any]]]
        if path.endswith("/responses"):
            final = {"id": message, "model": model, "status": "completed", "usage": USAGE}
            events = [("response.output_text.delta", {"delta": "x" * 40})] * count
            events.append(("response.completed", {"response": final}))
            return [_event(name, {"type": name, **data}) for name, data in events]
        if "/messages" in path:
            start = {"message": {"id": message, "model": model, "usage": {"input_tokens": 3000, "output_tokens": 1}}}
            end = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 400}}
            events = [("message_start", start)]
            events += [("content_block_delta", {"delta": {"type": "text_delta", "text": "x" * 40}})] * count
            events += [("message_delta", end), ("message_stop", {})]
            return [_event(name, {"type": name, **data}) for name, data in events]
        chunk = {"id": message, "model": model, "choices": [{"delta": {"content": "x" * 40}}], "usage": None}
        last: dict[str, Any] = {"id": message, "model": model, "choices": [], "usage": None}
        if request.get("stream_options", {}).get("include_usage"):
            last["usage"] = {"prompt_tokens": 3000, "completion_tokens": 400, "total_tokens": 3400}
        return [*[_event("", chunk)] * count, _event("", last), b"data: [DONE]\n\n"]

    @staticmethod
    def _send(
        handler: BaseHTTPRequestHandler, status: int, payload: dict[str, Any], *, encoding: str | None = None
    ) -> None:
        raw = json.dumps(payload).encode()
        raw = gzip.compress(raw) if encoding else raw
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(raw)))
        if encoding:
            handler.send_header("Content-Encoding", encoding)
        handler.end_headers()
        handler.wfile.write(raw)


def _event(name: str, payload: dict[str, Any]) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()
