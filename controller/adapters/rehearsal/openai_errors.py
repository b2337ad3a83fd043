"""OpenAI's error body, the same in both of its dialects."""

from __future__ import annotations

from controller.adapters.rehearsal.conversation import Json


def openai_failure(status: int, message: str) -> Json:
    """`{"error": {...}}` with the type and code that fit the status."""
    code: str | None = None
    if status == 401:
        kind, code = "invalid_request_error", "invalid_api_key"
    elif status == 429:
        kind, code = "rate_limit_error", "rate_limit_exceeded"
    elif status >= 500:
        kind, code = "server_error", "server_is_overloaded" if status in (503, 529) else None
    else:
        kind = "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
