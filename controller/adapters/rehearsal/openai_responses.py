"""The OpenAI Responses dialect. Cached and written tokens are inside `input_tokens`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.adapters.rehearsal.conversation import (
    CREATED_AT,
    EVENT_STREAM,
    Conversation,
    Json,
    OfferedTool,
    Reply,
    event,
    pieces,
)
from controller.adapters.rehearsal.openai_errors import openai_failure
from controller.adapters.rehearsal.request_parts import conversation, objects, schema_of, some_objects, text_field

_CALL_TYPES: Final = ("function_call", "custom_tool_call", "local_shell_call", "shell_call")


class OpenAIResponses:
    """`POST /v1/responses`."""

    stream_type = EVENT_STREAM

    def read(self, body: Json) -> Conversation:
        given = body.get("input")
        asked = [{"role": "user", "content": given}] if isinstance(given, str) else given
        items = some_objects(asked, field="input")
        tools = objects(body.get("tools"), field="tools")
        return conversation(
            text_field(body, "model"),
            stream=body.get("stream") is True,
            items=items,
            is_own=_is_own,
            calls_made=sum(item.get("type") in _CALL_TYPES for item in items),
            content=lambda item: item.get("content"),
            tools=[_tool(tool) for tool in tools],
            head=(body.get("instructions"), tools),
            instructions=body.get("instructions"),
        )

    def whole(self, reply: Reply) -> Json:
        return _response(reply, status="completed", output=list(_output(reply)))

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        for number, (name, fields) in enumerate(_events(self, reply)):
            yield event({"type": name, "sequence_number": number, **fields}, name=name)

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        return openai_failure(status, message)


def _events(dialect: OpenAIResponses, reply: Reply) -> Iterator[tuple[str, Json]]:
    started = _response(reply, status="in_progress", output=[])
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    for index, item in enumerate(_output(reply)):
        place: Json = {"output_index": index, "item_id": item["id"]}
        yield "response.output_item.added", {"output_index": index, "item": _unfilled(item)}
        if item["type"] == "message":
            yield from _text_events(reply.text, {**place, "content_index": 0})
        elif item["type"] in ("function_call", "custom_tool_call"):
            yield from _call_events(item, place)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": dialect.whole(reply)}


def _text_events(text: str, place: Json) -> Iterator[tuple[str, Json]]:
    yield "response.content_part.added", {**place, "part": _text_part("")}
    for piece in pieces(text):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": _text_part(text)}


def _call_events(item: Json, place: Json) -> Iterator[tuple[str, Json]]:
    is_function = item["type"] == "function_call"
    field = "arguments" if is_function else "input"
    name = "response.function_call_arguments" if is_function else "response.custom_tool_call_input"
    for piece in pieces(item[field]):
        yield f"{name}.delta", {**place, "delta": piece}
    yield f"{name}.done", {**place, field: item[field]}


def _is_own(item: Json) -> bool:
    """True for what the model wrote: its messages, its reasoning, its calls."""
    return item.get("role") == "assistant" or item.get("type") in (*_CALL_TYPES, "reasoning")


def _tool(tool: Json) -> OfferedTool:
    kind = str(tool.get("type") or "function")
    return OfferedTool(
        kind=kind,
        name=str(tool.get("name") or kind),
        schema=schema_of(tool.get("parameters")),
        description=str(tool.get("description") or ""),
    )


def _response(reply: Reply, *, status: str, output: list[Json]) -> Json:
    return {
        "id": f"resp_{reply.reply_id}",
        "object": "response",
        "created_at": CREATED_AT,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": False,
        "service_tier": "default",
        "store": False,
        "usage": _usage(reply) if status == "completed" else None,
    }


def _output(reply: Reply) -> Iterator[Json]:
    if reply.text:
        yield {
            "id": f"msg_{reply.reply_id}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [_text_part(reply.text)],
        }
    if (call := reply.call) is None:
        return
    common = {"status": "completed", "call_id": f"call_{reply.call_id}"}
    if call.kind == "function":
        head = {"id": f"fc_{reply.reply_id}", "type": "function_call"}
        yield {**head, **common, "name": call.name, "arguments": call.text}
    elif call.kind == "custom":
        head = {"id": f"ctc_{reply.reply_id}", "type": "custom_tool_call"}
        yield {**head, **common, "name": call.name, "input": call.text}
    else:
        yield {"id": f"sh_{reply.reply_id}", "type": f"{call.kind}_call", **common, "action": call.arguments}


def _unfilled(item: Json) -> Json:
    """The item as it is announced, before its content has arrived."""
    emptied = {"content": [], "arguments": "", "input": ""}
    return {**item, "status": "in_progress", **{name: empty for name, empty in emptied.items() if name in item}}


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(reply: Reply) -> Json:
    tokens = reply.tokens
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.prompt + tokens.output,
    }
