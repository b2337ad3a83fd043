"""Answers as the providers write them, as bytes: per dialect a whole one, a stream, and what it must be read as."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controller.domain.usage import Usage
from tests.world.processes import MODEL


@dataclass(frozen=True)
class Answer:
    """One scripted answer; `usage` is what the dialect's documentation says its counters mean."""

    dialect: str
    events: tuple[tuple[str, Any], ...]  # (event name or "", JSON payload or "[DONE]")
    usage: Usage
    end: int  # how many events, from the start, hold everything the dialect calls final

    def framed(self, newline: bytes = b"\n") -> bytes:
        """The stream as server-sent events."""
        return framed(self.events, newline)


def framed(events: Sequence[tuple[str, Any]], newline: bytes = b"\n") -> bytes:
    """Events in the framing of the standard."""
    lines = []
    for name, payload in events:
        data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        lines += [f"event: {name}"] if name else []
        lines += [f"data: {data}", ""]
    return b"".join(line.encode() + newline for line in lines)


def anthropic(*, texts: Sequence[str] = ("Hi",), counts: Sequence[int] = (400,), message_id: str = "msg_a") -> Answer:
    """Output counts are running totals; 3,000 tokens go in."""
    start = {"id": message_id, "model": MODEL, "usage": {"input_tokens": 3_000, "output_tokens": 1}}
    events: list[tuple[str, Any]] = [
        ("message_start", {"type": "message_start", "message": start}),
        ("content_block_start", {"type": "content_block_start", "index": 0}),
        ("ping", {"type": "ping"}),
        *(("content_block_delta", {"type": "content_block_delta", "delta": {"text": text}}) for text in texts),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("a_name_of_next_year", {"type": "a_name_of_next_year", "usage": "?"}),
    ]
    for count in counts:
        delta = {"stop_reason": "end_turn"} if count == counts[-1] else {}
        events.append(("message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": count}}))
    events.append(("message_stop", {"type": "message_stop"}))
    return Answer("anthropic", tuple(events), Usage(tokens={"in": 3_000, "out": counts[-1]}), len(events))


def chat(*, texts: Sequence[str] = ("Hi",), counts: Sequence[int] = (400,), message_id: str = "msg_c") -> Answer:
    """Several counts are running totals, as some compatible servers send them in every chunk."""
    head = {"id": message_id, "object": "chat.completion.chunk", "model": MODEL}

    def usage(count: int) -> dict[str, int]:
        return {"prompt_tokens": 3_000, "completion_tokens": count, "total_tokens": 3_000 + count}

    running = [*counts[:-1], *[None] * len(texts)]
    events: list[tuple[str, Any]] = [
        (
            "",
            head
            | {"choices": [{"index": 0, "delta": {"content": text}}], "usage": None if count is None else usage(count)},
        )
        for text, count in zip(texts, running, strict=False)
    ]
    events.append(("", head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None}))
    events.append(("", head | {"choices": [], "usage": usage(counts[-1])}))
    events.append(("", "[DONE]"))
    return Answer("openai_chat", tuple(events), Usage(tokens={"in": 3_000, "out": counts[-1]}), len(events) - 1)


def responses(
    *,
    texts: Sequence[str] = ("Hi",),
    counts: Sequence[int] = (400,),
    message_id: str = "msg_r",
    status: str = "completed",
) -> Answer:
    """The terminal event carries the whole response, whatever its status."""
    usage = {"input_tokens": 3_000, "output_tokens": counts[-1], "total_tokens": 3_000 + counts[-1]}
    begun = {"id": message_id, "model": MODEL, "status": "in_progress", "usage": None}
    ended = {"id": message_id, "model": MODEL, "status": status, "output": list(texts), "usage": usage}
    events: list[tuple[str, Any]] = [
        ("response.created", {"type": "response.created", "response": begun}),
        *(("response.output_text.delta", {"type": "response.output_text.delta", "delta": text}) for text in texts),
        (f"response.{status}", {"type": f"response.{status}", "response": ended}),
    ]
    return Answer("openai_responses", tuple(events), Usage(tokens={"in": 3_000, "out": counts[-1]}), len(events))


def gemini(*, texts: Sequence[str] = ("Hi",), counts: Sequence[int] = (400,), message_id: str = "msg_g") -> Answer:
    """Every chunk repeats the running usage; 100 of the output tokens are thoughts. There is no end mark."""
    head = {"responseId": message_id, "modelVersion": MODEL}

    def chunk(text: str, count: int, **candidate: str) -> dict[str, Any]:
        usage = {
            "promptTokenCount": 3_000,
            "candidatesTokenCount": count,
            "thoughtsTokenCount": 100,
            "totalTokenCount": 3_100 + count,
        }
        content = {"parts": [{"text": text}], "role": "model"}
        return head | {"candidates": [{"content": content, "index": 0} | candidate], "usageMetadata": usage}

    running = [*counts[:-1], *[counts[0]] * len(texts)]
    events: list[tuple[str, Any]] = [("", chunk(text, count)) for text, count in zip(texts, running, strict=False)]
    events.append(("", chunk("", counts[-1], finishReason="STOP")))
    return Answer("gemini", tuple(events), Usage(tokens={"in": 3_000, "out": counts[-1] + 100}), len(events))


ANSWERS = {"anthropic": anthropic, "openai_chat": chat, "openai_responses": responses, "gemini": gemini}
