"""The check of a whole request body against the attempt's lane and dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from controller.domain.usage import Dialect
from controller.meter.admission import anthropic, gemini, openai
from controller.meter.admission.fields import token_limit
from controller.meter.admission.refusals import Refused
from controller.meter.admission.routes import Operation, Route
from controller.meter.wire_json import record

BODY_BYTES_MAX: Final = 32 * 2**20  # the largest that the providers accept


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be accepted: the bytes to forward, and every change made to them, by name."""

    body: bytes
    changes: tuple[str, ...]
    output_tokens: int | None  # the limit the request sets itself, if any
    asks_lifetime: bool = False  # of cache writes, other than the provider's default


def admit(route: Route, raw: bytes, *, model: str, dialect: Dialect, betas: str = "") -> Admitted:
    """Check one request body against the lane. Raises Refused with the field's name."""
    if route.dialect != dialect:
        raise Refused(400, f"{route.path} does not fit this attempt, whose dialect is {dialect}")
    try:
        body = record(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not one strict JSON document: {str(error)[:200]}") from None
    asked = body.get("model") if route.model is None else route.model
    if asked != model:
        raise Refused(400, f"model: {str(asked)[:100]!r} is not this attempt's model {model!r}")
    match dialect:
        case "anthropic":
            anthropic.check(body, betas)
            asks = _may_name_lifetime(raw) and anthropic.asks_lifetime(body)
            return Admitted(raw, (), token_limit(body, ("max_tokens",)), asks)
        case "openai_responses":
            openai.check_responses(body)
            return Admitted(raw, (), token_limit(body, ("max_output_tokens",)), openai.asks_lifetime(body))
        case "openai_chat":
            return _chat(raw, body)
        case "gemini":
            if route.operation is Operation.COUNT_TOKENS:
                gemini.check_count(body, model)
                return Admitted(raw, (), None)
            return Admitted(raw, (), gemini.check(body, model))


def _chat(raw: bytes, body: dict[str, Any]) -> Admitted:
    openai.check_chat(body)
    forwarded, changes = openai.with_usage_in_stream(raw, body)
    limit = token_limit(body, ("max_completion_tokens", "max_tokens"))
    return Admitted(forwarded, changes, limit, openai.asks_lifetime(body))


def _may_name_lifetime(raw: bytes) -> bool:
    """Whether a walk through the body is worth its time; an escaped letter may spell the name."""
    return b'"ttl"' in raw or b"\\u" in raw
