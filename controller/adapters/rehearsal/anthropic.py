"""The Anthropic Messages dialect. Cache reads and writes are outside `input_tokens`."""

from __future__ import annotations

from collections.abc import Iterator

from controller.adapters.rehearsal.conversation import (
    EVENT_STREAM,
    Conversation,
    Json,
    OfferedTool,
    Reply,
    event,
    pieces,
)
from controller.adapters.rehearsal.request_parts import conversation, objects, schema_of, some_objects, text_field

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicMessages:
    """`POST /v1/messages`."""

    stream_type = EVENT_STREAM

    def read(self, body: Json) -> Conversation:
        messages = some_objects(body.get("messages"), field="messages")
        tools = objects(body.get("tools"), field="tools")
        calls = sum(
            part.get("type") == "tool_use"
            for index, message in enumerate(messages)
            if message.get("role") == "assistant" and isinstance(message.get("content"), list)
            for part in objects(message["content"], field=f"messages.{index}.content")
        )
        return conversation(
            text_field(body, "model"),
            stream=body.get("stream") is True,
            items=messages,
            is_own=lambda message: message.get("role") == "assistant",
            calls_made=calls,
            content=lambda message: message.get("content"),
            tools=[_tool(tool) for tool in tools],
            head=(body.get("system"), tools),
            instructions=body.get("system"),
        )

    def whole(self, reply: Reply) -> Json:
        content: list[Json] = []
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        if reply.call is not None:
            content.append({**_tool_use(reply), "input": reply.call.arguments})
        return {**_envelope(reply), "content": content, "stop_reason": _stop_reason(reply), "usage": _usage(reply)}

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        start = {**_envelope(reply), "content": [], "stop_reason": None, "usage": {**_usage(reply), "output_tokens": 1}}
        yield _event({"type": "message_start", "message": start})
        yield _event({"type": "ping"})
        index = 0
        if reply.text:
            yield _event(_block_start(index, {"type": "text", "text": ""}))
            for piece in pieces(reply.text):
                yield _event(_block_delta(index, {"type": "text_delta", "text": piece}))
            yield _event({"type": "content_block_stop", "index": index})
            index += 1
        if reply.call is not None:
            yield _event(_block_start(index, {**_tool_use(reply), "input": {}}))
            for piece in pieces(reply.call.text):
                yield _event(_block_delta(index, {"type": "input_json_delta", "partial_json": piece}))
            yield _event({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.tokens.output}})
        yield _event({"type": "message_stop"})

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        error = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": request_id}


def _tool(tool: Json) -> OfferedTool:
    kind = str(tool.get("type") or "custom")
    name = str(tool.get("name") or kind)
    if kind.startswith("bash_"):  # the provider's own bash tool has no schema of its own
        return OfferedTool(kind="function", name=name, schema={"properties": {"command": {"type": "string"}}})
    # A tool of the user's own is called "custom" here and a function elsewhere.
    return OfferedTool(kind="function", name=name, schema=schema_of(tool.get("input_schema")))


def _envelope(reply: Reply) -> Json:
    return {
        "id": f"msg_{reply.reply_id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "stop_sequence": None,
    }


def _tool_use(reply: Reply) -> Json:
    return {"type": "tool_use", "id": f"toolu_{reply.call_id}", "name": reply.call.name if reply.call else ""}


def _stop_reason(reply: Reply) -> str:
    return "end_turn" if reply.call is None else "tool_use"


def _usage(reply: Reply) -> Json:
    tokens = reply.tokens
    return {
        "input_tokens": tokens.uncached,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": tokens.output,
        "service_tier": "standard",
    }


def _block_start(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _block_delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _event(data: Json) -> bytes:
    return event(data, name=str(data["type"]))
