"""The OpenAI Chat Completions dialect. Cached and written tokens are inside `prompt_tokens`."""

from __future__ import annotations

from collections.abc import Iterator

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


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    stream_type = EVENT_STREAM

    def read(self, body: Json) -> Conversation:
        messages = some_objects(body.get("messages"), field="messages")
        tools = objects(body.get("tools"), field="tools")
        own = [message for message in messages if message.get("role") == "assistant"]
        options = body.get("stream_options")
        return conversation(
            text_field(body, "model"),
            stream=body.get("stream") is True,
            items=messages,
            is_own=lambda message: message.get("role") == "assistant",
            calls_made=sum(len(objects(message.get("tool_calls"), field="tool_calls")) for message in own),
            content=lambda message: message.get("content"),
            tools=[_tool(tool) for tool in tools],
            head=(tools,),
            include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    def whole(self, reply: Reply) -> Json:
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.call is not None:
            message["tool_calls"] = [_tool_call(reply, reply.call.text)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
        return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            usage: Json = {"usage": None} if include_usage else {}
            return event({**_envelope(reply, "chat.completion.chunk"), "choices": [choice], **usage})

        yield chunk({"role": "assistant", "content": "" if reply.text else None, "refusal": None})
        for piece in pieces(reply.text):
            yield chunk({"content": piece})
        if reply.call is not None:
            yield chunk({"tool_calls": [{"index": 0, **_tool_call(reply, "")}]})
            for piece in pieces(reply.call.text):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, _finish_reason(reply))
        if include_usage:
            yield event({**_envelope(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        return openai_failure(status, message)


def _tool(tool: Json) -> OfferedTool:
    kind = str(tool.get("type") or "function")
    inner = schema_of(tool.get(kind))
    return OfferedTool(
        kind=kind,
        name=str(inner.get("name") or kind),
        schema=schema_of(inner.get("parameters")),
        description=str(inner.get("description") or ""),
    )


def _envelope(reply: Reply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{reply.reply_id}",
        "object": kind,
        "created": CREATED_AT,
        "model": reply.model,
        "service_tier": "default",
    }


def _tool_call(reply: Reply, text: str) -> Json:
    call = reply.call
    if call is not None and call.kind == "custom":
        return {"id": f"call_{reply.call_id}", "type": "custom", "custom": {"name": call.name, "input": text}}
    name = call.name if call is not None else ""
    return {"id": f"call_{reply.call_id}", "type": "function", "function": {"name": name, "arguments": text}}


def _finish_reason(reply: Reply) -> str:
    return "stop" if reply.call is None else "tool_calls"


def _usage(reply: Reply) -> Json:
    tokens = reply.tokens
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
