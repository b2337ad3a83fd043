"""The Gemini dialect's answers with thoughts, which the rehearsal model never has; they lie outside the candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator

from controller.adapters.rehearsal.conversation import Json, Reply, pieces

THOUGHT_TOKENS = 100
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}


class GeminiShapes:
    """`POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`."""

    def whole(self, reply: Reply) -> Json:
        return _chunk(reply, reply.text, last=True)

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        texts = list(pieces(reply.text))
        for position, text in enumerate(texts):
            yield _event(_chunk(reply, text, last=position == len(texts) - 1))

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        return {"error": {"code": status, "message": message, "status": STATUSES.get(status, "UNAVAILABLE")}}


def _chunk(reply: Reply, text: str, *, last: bool) -> Json:
    tokens = reply.tokens
    prompt = tokens.prompt
    # Every chunk repeats the usage so far; only the last one's is final.
    candidates, thoughts = (tokens.output - THOUGHT_TOKENS, THOUGHT_TOKENS) if last else (1, 0)
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": text}]},
                "index": 0,
                **({"finishReason": "STOP"} if last else {}),
            }
        ],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": tokens.cache_read,
            "candidatesTokenCount": candidates,
            "thoughtsTokenCount": thoughts,
            "totalTokenCount": prompt + candidates + thoughts,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        },
        "modelVersion": reply.model,
        "responseId": reply.reply_id,
    }


def _event(payload: Json) -> bytes:
    return f"data: {json.dumps(payload)}\r\n\r\n".encode()
