"""The Gemini dialect. Cached tokens are inside the prompt; the model and the form of a stream are in the path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controller.adapters.rehearsal.conversation import (
    EVENT_STREAM,
    Conversation,
    Json,
    OfferedTool,
    Reply,
    RequestRefused,
    event,
    pieces,
)
from controller.adapters.rehearsal.request_parts import conversation, objects, schema_of, some_objects

CALL: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):(generateContent|streamGenerateContent|countTokens)")
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, slots=True)
class GeminiContent:
    """`POST /v1beta/models/{model}:generateContent`, or `:streamGenerateContent`: one array unless `alt=sse`."""

    model: str
    is_streamed: bool = False
    is_array: bool = False

    @property
    def stream_type(self) -> str:
        return "application/json; charset=UTF-8" if self.is_array else EVENT_STREAM

    def read(self, body: Json) -> Conversation:
        contents = some_objects(body.get("contents"), field="contents")
        tools = objects(body.get("tools"), field="tools")
        system = body.get("systemInstruction")
        own = [content for content in contents if content.get("role") == "model"]
        return conversation(
            self.model,
            stream=self.is_streamed,
            items=contents,
            is_own=lambda content: content.get("role") == "model",
            calls_made=sum("functionCall" in part for content in own for part in _parts(content)),
            content=_parts,
            tools=[
                _tool(declared)
                for tool in tools
                for declared in objects(tool.get("functionDeclarations"), field="tools.functionDeclarations")
            ],
            head=(system, tools),
            instructions=_parts(system) if isinstance(system, dict) else None,
        )

    def whole(self, reply: Reply) -> Json:
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        return _answer(reply, [*parts, *_calls(reply)], output=reply.tokens.output, is_last=True)

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        chunks = [_answer(reply, [{"text": piece}], output=1, is_last=False) for piece in pieces(reply.text)]
        chunks.append(_answer(reply, list(_calls(reply)), output=reply.tokens.output, is_last=True))
        if not self.is_array:
            yield from (event(chunk) for chunk in chunks)
            return
        for position, chunk in enumerate(chunks):
            text = json.dumps(chunk, ensure_ascii=False)
            yield f"{',' if position else '['}{text}{']' if chunk is chunks[-1] else ''}\r\n".encode(errors="replace")

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        return {"error": {"code": status, "message": message, "status": _STATUSES.get(status, "UNAVAILABLE")}}


def dialect_of_call(call: str, *, alt: str | None) -> tuple[GeminiContent, str]:
    """The dialect and the method that `{model}:{method}` in a path asks for. Raises RequestRefused (404)."""
    found = CALL.fullmatch(call)
    if found is None:
        raise RequestRefused(404, f"Requested entity was not found: {call[:80]}")
    model, method = found.groups()
    is_streamed = method == "streamGenerateContent"
    return GeminiContent(model, is_streamed=is_streamed, is_array=is_streamed and alt != "sse"), method


def _parts(content: Json) -> list[Json]:
    return objects(content.get("parts"), field="contents.parts")


def _tool(declared: Json) -> OfferedTool:
    given = declared.get("parametersJsonSchema") or declared.get("parameters")
    return OfferedTool(
        kind="function",
        name=str(declared.get("name") or ""),
        schema=_in_lower_case(schema_of(given)),
        description=str(declared.get("description") or ""),
    )


def _in_lower_case(schema: Json) -> Json:
    """The schema with its types as JSON Schema spells them; this dialect spells them in capitals."""
    kind, properties = schema.get("type"), schema.get("properties")
    lowered: Json = {"type": kind.lower()} if isinstance(kind, str) else {}
    if isinstance(properties, dict):
        lowered["properties"] = {
            name: _in_lower_case(inner) if isinstance(inner, dict) else inner for name, inner in properties.items()
        }
    return {**schema, **lowered}


def _calls(reply: Reply) -> Iterator[Json]:
    if reply.call is not None:
        yield {"functionCall": {"id": reply.call_id, "name": reply.call.name, "args": reply.call.arguments}}


def _answer(reply: Reply, parts: list[Json], *, output: int, is_last: bool) -> Json:
    """A whole answer or a chunk; every one repeats the usage so far, and the last one's is final."""
    tokens = reply.tokens
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {
        "candidates": [{**candidate, "finishReason": "STOP"} if is_last else candidate],
        "usageMetadata": {
            "promptTokenCount": tokens.prompt,
            "cachedContentTokenCount": tokens.cache_read,
            "candidatesTokenCount": output,
            "totalTokenCount": tokens.prompt + output,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.prompt}],
        },
        "modelVersion": reply.model,
        "responseId": reply.reply_id,
    }
