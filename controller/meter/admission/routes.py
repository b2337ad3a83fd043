"""The allowed paths. Everything else is 404."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl

from controller.domain.usage import Dialect
from controller.meter.admission.refusals import Refused

MODEL_PLACE: Final = "{model}"
MODEL_IN_PATH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
GEMINI_ROOTS: Final = ("/v1beta/models", "/v1/models")  # the SDK calls the second one unless it is told otherwise
GEMINI_PAGES: Final[Mapping[str, None]] = {"key": None, "pageSize": None, "pageToken": None}
GEMINI_CALL: Final = re.compile(r"/v1(beta)?/models/[^/]*:[A-Za-z]+")


class Operation(StrEnum):
    """What a route does."""

    INFER = "infer"
    COUNT_TOKENS = "count_tokens"
    LIST_MODELS = "list_models"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Route:
    """One allowed method and path. In `ROUTES` a path may hold `{model}`; in a found route it is the path as asked."""

    method: str
    path: str
    operation: Operation
    dialect: Dialect | None
    query: Mapping[str, str | None] = field(default_factory=dict)  # allowed query parameters; None allows any value
    model: str | None = None  # the model that the path names, where it names one


def _gemini(call: str, operation: Operation, **query: str | None) -> tuple[Route, ...]:
    allowed = {"key": None, **query}
    return tuple(Route("POST", f"{root}/{MODEL_PLACE}:{call}", operation, "gemini", allowed) for root in GEMINI_ROOTS)


ROUTES: Final = (
    Route("POST", "/v1/messages", Operation.INFER, "anthropic", {"beta": "true"}),
    Route("POST", "/v1/messages/count_tokens", Operation.COUNT_TOKENS, "anthropic", {"beta": "true"}),
    Route("POST", "/v1/chat/completions", Operation.INFER, "openai_chat"),
    Route("POST", "/v1/responses", Operation.INFER, "openai_responses"),
    *_gemini("generateContent", Operation.INFER),
    *_gemini("streamGenerateContent", Operation.INFER, alt="sse"),
    *_gemini("countTokens", Operation.COUNT_TOKENS),
    Route("GET", "/v1/models", Operation.LIST_MODELS, None, {"limit": None, "client_version": None, **GEMINI_PAGES}),
    Route("GET", "/v1beta/models", Operation.LIST_MODELS, "gemini", GEMINI_PAGES),
    Route("HEAD", "/", Operation.PROBE, None),
)


def find_route(method: str, path: str, query: str) -> Route:
    """The allowed route of a raw path and query string. Raises Refused(404) for any other form."""
    for route in ROUTES:
        if route.method == method and (found := _matched(route, path)) is not None:
            break
    else:
        raise Refused(404, f"{method} {path[:200]} is not one of the paths a harness may call")
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in found.query or found.query[name] not in (None, value):
            raise Refused(400, f"query parameter {name[:40]!r} of {path} is not allowed")
    return found


def _matched(route: Route, path: str) -> Route | None:
    before, place, after = route.path.partition(MODEL_PLACE)
    if not place:
        return route if path == route.path else None
    if not (path.startswith(before) and path.endswith(after)):
        return None
    model = path[len(before) : len(path) - len(after)]
    return replace(route, path=path, model=model) if MODEL_IN_PATH.fullmatch(model) else None


def dialect_of_path(path: str) -> Dialect | None:
    """Whose error form a client of this path understands, also where the path itself is refused."""
    if path.startswith("/v1beta/") or GEMINI_CALL.fullmatch(path):
        return "gemini"
    return "anthropic" if path.startswith("/v1/messages") else None
