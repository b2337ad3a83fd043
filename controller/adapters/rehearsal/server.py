"""The rehearsal model as a web application: four dialects, streamed or not, and the failures a script asks for."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from controller.adapters.rehearsal.anthropic import AnthropicMessages
from controller.adapters.rehearsal.cell import cell_of_headers
from controller.adapters.rehearsal.conversation import CREATED_AT, Dialect, Json, Reply, RequestRefused
from controller.adapters.rehearsal.gemini import GeminiContent, dialect_of_call
from controller.adapters.rehearsal.openai_chat import OpenAIChat
from controller.adapters.rehearsal.openai_responses import OpenAIResponses
from controller.adapters.rehearsal.play import current_step, reply_to, token_count
from controller.adapters.rehearsal.script import RehearsalScript, Step
from controller.domain.json_files import read_json
from controller.errors import InvalidInput

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Pause = Callable[[float], Awaitable[None]]

REHEARSAL_MODEL: Final = "rehearsal-1"
BODY_BYTES_MAX: Final = 32 * 2**20

_FAILURES: Final = {429: "Rate limit reached for this rehearsal.", 529: "Overloaded"}
_ANTHROPIC: Final = AnthropicMessages()
_DIALECTS: Final[Mapping[str, Dialect]] = {
    "/v1/messages": _ANTHROPIC,
    "/v1/chat/completions": OpenAIChat(),
    "/v1/responses": OpenAIResponses(),
}
_GEMINI_ROOTS: Final = ("/v1beta/models", "/v1/models")


def app(scripts: Mapping[str, RehearsalScript], chance_seed: str, *, pause: Pause = asyncio.sleep) -> web.Application:
    """The application that plays `scripts` (by task id).

    Which variant an attempt plays depends on `chance_seed`, so two servers with equal arguments answer alike. `pause`
    waits the seconds that a step's `sleep_ms` asks for. Requests are counted per attempt, only to make reply ids
    distinct; nothing else is remembered.
    """
    player = _Player(scripts, chance_seed, pause)
    application = web.Application(client_max_size=BODY_BYTES_MAX)
    for path, dialect in _DIALECTS.items():
        application.router.add_post(path, player.handler(dialect))
    application.router.add_post("/v1/messages/count_tokens", _guarded(_ANTHROPIC, _count_tokens))
    for root in _GEMINI_ROOTS:
        application.router.add_post(f"{root}/{{call}}", player.gemini)
    application.router.add_get("/v1/models", _models)
    application.router.add_get("/healthz", _health)
    return application


class _Player:
    def __init__(self, scripts: Mapping[str, RehearsalScript], chance_seed: str, pause: Pause) -> None:
        self._scripts = scripts
        self._chance_seed = chance_seed
        self._pause = pause
        self._requests: Counter[str] = Counter()

    def handler(self, dialect: Dialect) -> Handler:
        """The handler of one dialect's inference path."""

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._play(request, dialect)

        return _guarded(dialect, handle)

    async def gemini(self, request: web.Request) -> web.StreamResponse:
        """The handler of Gemini's paths, which hold the model and the method."""
        call, alt = request.match_info["call"], request.query.get("alt")
        try:
            dialect, method = dialect_of_call(call, alt=alt)
        except RequestRefused as refusal:
            return _refusal(GeminiContent(call), refusal)
        if method == "countTokens":
            return await _guarded(dialect, lambda asked: _count_gemini(asked, dialect))(request)
        return await self.handler(dialect)(request)

    async def _play(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        cell = cell_of_headers(request.headers)
        script = self._scripts.get(cell.task)
        if script is None:
            raise RequestRefused(400, f"No rehearsal script for the task {cell.task}.")
        conversation = dialect.read(await _body(request))
        step = current_step(script, cell, conversation, chance_seed=self._chance_seed)
        self._requests[cell.key] += 1
        reply = reply_to(step, cell, conversation, sequence=self._requests[cell.key])
        if step.sleep_ms:
            await self._pause(step.sleep_ms / 1000)
        if step.status is not None:
            raise RequestRefused(step.status, _FAILURES.get(step.status, "The rehearsal asks for this failure."))
        if conversation.stream:
            return await _stream(request, dialect, reply, step, include_usage=conversation.include_usage)
        return await _whole(request, dialect, reply, step)


def _guarded(dialect: Dialect, handler: Handler) -> Handler:
    """Turns refusals into the dialect's own error bodies."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except RequestRefused as refusal:
            return _refusal(dialect, refusal)

    return handle


def _refusal(dialect: Dialect, refusal: RequestRefused) -> web.StreamResponse:
    body = dialect.failure(refusal.status, str(refusal), request_id="req_rehearsal")
    return web.json_response(body, status=refusal.status, headers={"request-id": "req_rehearsal"})


async def _stream(
    request: web.Request, dialect: Dialect, reply: Reply, step: Step, *, include_usage: bool
) -> web.StreamResponse:
    headers = {**_reply_headers(reply), "Content-Type": dialect.stream_type}
    response = web.StreamResponse(headers=headers)
    events = list(dialect.stream(reply, include_usage=include_usage))
    await response.prepare(request)
    for data in events[: len(events) // 2] if step.truncate else events:
        await response.write(data)
    if step.truncate:
        _break_off(request)
    return response


async def _whole(request: web.Request, dialect: Dialect, reply: Reply, step: Step) -> web.StreamResponse:
    data = json.dumps(dialect.whole(reply), ensure_ascii=False).encode(errors="replace")
    headers = {**_reply_headers(reply), "Content-Type": "application/json", "Content-Length": str(len(data))}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(data[: len(data) // 2] if step.truncate else data)
    if step.truncate:
        _break_off(request)
    return response


def _break_off(request: web.Request) -> None:
    """Closes the connection in the middle of a response, after what was written has left."""
    if request.transport is not None:
        request.transport.close()


def _reply_headers(reply: Reply) -> dict[str, str]:
    return {"request-id": f"req_{reply.reply_id}", "x-request-id": f"req_{reply.reply_id}"}


async def _body(request: web.Request) -> Json:
    try:
        body = read_json(await request.read(), "body", floats=True)
    except InvalidInput as error:
        raise RequestRefused(400, str(error)) from error
    if not isinstance(body, dict):
        raise RequestRefused(400, "The body is not a JSON object.")
    return body


async def _count_tokens(request: web.Request) -> web.StreamResponse:
    cell_of_headers(request.headers)
    count = token_count(_ANTHROPIC.read(await _body(request)), "")
    return web.json_response({"input_tokens": count.prompt})


async def _count_gemini(request: web.Request, dialect: GeminiContent) -> web.StreamResponse:
    cell_of_headers(request.headers)
    body = await _body(request)
    inner = body.get("generateContentRequest")
    count = token_count(dialect.read(inner if isinstance(inner, dict) else body), "")
    return web.json_response({"totalTokens": count.prompt})


async def _models(request: web.Request) -> web.StreamResponse:
    entry = {
        "id": REHEARSAL_MODEL,
        "object": "model",
        "type": "model",
        "created": CREATED_AT,
        "owned_by": "rehearsal",
        "display_name": "Rehearsal model (scripted)",
    }
    return web.json_response({"object": "list", "data": [entry], "has_more": False})


async def _health(request: web.Request) -> web.StreamResponse:
    return web.json_response({"ok": True})
