"""A refusal, and how the provider of a dialect would word an error of its status."""

from __future__ import annotations

from typing import Any, Final

from controller.domain.usage import Dialect

ANTHROPIC_KINDS: Final = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
GEMINI_STATUSES: Final = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}


class Refused(Exception):
    """The request is not forwarded. `limit` marks a spending limit, which ends the attempt."""

    def __init__(self, status: int, reason: str, *, limit: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.limit = limit


def refusal_body(dialect: Dialect | None, refused: Refused) -> dict[str, Any]:
    """The refusal in the error form of the dialect's provider; OpenAI's form when the dialect is not known."""
    message = f"fairtrial meter: {refused.reason}"
    if dialect == "anthropic":
        kind = ANTHROPIC_KINDS.get(refused.status, "not_found_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    if dialect == "gemini":
        status = GEMINI_STATUSES.get(refused.status, "NOT_FOUND")
        return {"error": {"code": refused.status, "message": message, "status": status}}
    code = "spend_limit_reached" if refused.limit else "request_refused"
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
