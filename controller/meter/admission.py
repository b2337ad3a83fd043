"""What a request may do, decided before anything is accepted. Pure.

Refusals are 400, 401, 403 or 404 in the dialect's own error form: harnesses retry 408, 409, 429 and 5xx, and a refusal
must not be retried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qsl

from controller.domain.usage import Dialect

BODY_BYTES_MAX: Final = 32 * 2**20  # the largest that the providers accept
TOKEN_CHARS_MAX: Final = 512


class Operation(StrEnum):
    """What a route does."""

    INFER = "infer"
    COUNT_TOKENS = "count_tokens"
    LIST_MODELS = "list_models"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Route:
    """One allowed method and path."""

    method: str
    path: str
    operation: Operation
    dialect: Dialect | None
    query: Mapping[str, str | None]  # allowed query parameters; None allows any value


ROUTES: Final = (
    Route("POST", "/v1/messages", Operation.INFER, "anthropic", {"beta": "true"}),
    Route("POST", "/v1/messages/count_tokens", Operation.COUNT_TOKENS, "anthropic", {"beta": "true"}),
    Route("POST", "/v1/chat/completions", Operation.INFER, "openai_chat", {}),
    Route("POST", "/v1/responses", Operation.INFER, "openai_responses", {}),
    Route("GET", "/v1/models", Operation.LIST_MODELS, None, {"limit": None, "client_version": None}),
    Route("HEAD", "/", Operation.PROBE, None, {}),
)


class Refused(Exception):
    """The request is not forwarded. `limit` marks a spending limit, which ends the attempt."""

    def __init__(self, status: int, reason: str, *, limit: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be accepted: the bytes to forward, and every change made to them, by name."""

    body: bytes
    changes: tuple[str, ...]
    output_tokens: int | None  # the limit the request sets itself, if any


def find_route(method: str, path: str, query: str) -> Route:
    """The allowed route of a raw path and query string. Raises Refused(404) for any other form."""
    for route in ROUTES:
        if (route.method, route.path) == (method, path):
            break
    else:
        raise Refused(404, f"{method} {path[:200]} is not one of the paths a harness may call")
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in route.query or route.query[name] not in (None, value):
            raise Refused(400, f"query parameter {name[:40]!r} of {path} is not allowed")
    return route


def token_of(headers: Iterable[tuple[str, str]]) -> str:
    """The run token, from whichever credential header the harness uses.

    Raises Refused(401) when there is none, or when two headers carry different ones.
    """
    found: set[str] = set()
    for name, value in headers:
        lowered = name.lower()
        if lowered == "authorization":
            scheme, _, token = value.strip().partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise Refused(401, "the authorization header must carry a bearer token")
            found.add(token.strip())
        elif lowered in ("x-api-key", "x-goog-api-key") and value.strip():
            found.add(value.strip())
    if len(found) > 1:
        raise Refused(401, "two different credentials were sent")
    if not found:
        raise Refused(401, "no run token was sent")
    token = found.pop()
    if len(token) > TOKEN_CHARS_MAX:
        raise Refused(401, "the run token is not known")
    return token


def admit(route: Route, raw: bytes, *, model: str, dialect: Dialect, betas: str = "") -> Admitted:
    """Check one request body against the lane. Raises Refused with the field's name."""
    if route.dialect != dialect:
        raise Refused(400, f"{route.path} does not fit this attempt, whose dialect is {dialect}")
    body = _parsed(raw)
    asked = body.get("model")
    if asked != model:
        raise Refused(400, f"model: {str(asked)[:100]!r} is not this attempt's model {model!r}")
    if dialect == "anthropic":
        _check_anthropic(body, betas)
        return Admitted(raw, (), _limit(body, "max_tokens"))
    _check_openai(body)
    if dialect == "openai_responses":
        return Admitted(raw, (), _limit(body, "max_output_tokens"))
    forwarded, changes = _with_usage_in_stream(raw, body)
    limit = _limit(body, "max_completion_tokens")
    return Admitted(forwarded, changes, _limit(body, "max_tokens") if limit is None else limit)


def _parsed(raw: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named = dict(pairs)
        if len(named) != len(pairs):
            raise ValueError("a key appears twice in one object")
        return named

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not one strict JSON document: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is not a JSON object")
    return body


def _limit(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(400, f"{name}: must be a whole number of tokens")
    return value


def _refuse_present(body: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if body.get(name) not in (None, False, [], {}, ""):
            raise Refused(400, f"{name}: this feature is switched off for every harness")


def _allow_only(body: Mapping[str, Any], name: str, allowed: tuple[object, ...]) -> None:
    if body.get(name) is not None and body[name] not in allowed:
        raise Refused(400, f"{name}: {str(body[name])[:60]!r} is not allowed")


ANTHROPIC_OFF: Final = (
    "fallbacks",
    "fallback_credit_token",
    "billing_policy",
    "mcp_servers",
    "container",
    "thread",
)
ANTHROPIC_CLIENT_TOOLS: Final = ("bash_", "text_editor_", "memory_", "computer_")
ANTHROPIC_BETAS_OFF: Final = (
    "advisor",
    "code-execution",
    "fallback",
    "fast-mode",
    "files-api",
    "mcp-client",
    "server-side-fallback",
    "skills",
    "web-fetch",
    "web-search",
)


def _check_anthropic(body: Mapping[str, Any], betas: str) -> None:
    _refuse_present(body, ANTHROPIC_OFF)
    _allow_only(body, "speed", ("standard",))
    _allow_only(body, "service_tier", ("standard_only", "auto"))
    _allow_only(body, "inference_geo", ("global",))
    for beta in betas.split(","):
        if beta.strip().lower().startswith(ANTHROPIC_BETAS_OFF):
            raise Refused(400, f"anthropic-beta: {beta.strip()[:60]!r} is switched off for every harness")
    for tool in _objects(body, "tools"):
        kind = tool.get("type")
        if kind not in (None, "custom") and not str(kind).startswith(ANTHROPIC_CLIENT_TOOLS):
            raise Refused(400, f"tools: {str(kind)[:60]!r} runs at the provider and is switched off for every harness")


OPENAI_OFF: Final = (
    "background",
    "previous_response_id",
    "conversation",
    "prompt",
    "prediction",
    "audio",
    "web_search_options",
)
OPENAI_CLIENT_TOOLS: Final = ("function", "custom", "local_shell", "apply_patch")


def _check_openai(body: Mapping[str, Any]) -> None:
    _refuse_present(body, OPENAI_OFF)
    _allow_only(body, "service_tier", ("default", "auto"))
    _allow_only(body, "n", (1,))
    _allow_only(body, "modalities", (["text"],))
    _check_openai_tools(_objects(body, "tools"))


def _check_openai_tools(tools: Iterable[Mapping[str, Any]]) -> None:
    for tool in tools:
        kind = tool.get("type")
        if kind == "namespace":  # a named group of tools, each checked for itself
            _check_openai_tools(inner for inner in _objects(tool, "tools") if inner.get("type") != "namespace")
        elif kind == "shell":
            environment = tool.get("environment")
            if not isinstance(environment, dict) or environment.get("type") != "local":
                raise Refused(400, "tools: a hosted shell is switched off for every harness")
        elif kind not in OPENAI_CLIENT_TOOLS:
            raise Refused(400, f"tools: {str(kind)[:60]!r} runs at the provider and is switched off for every harness")


def _objects(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Refused(400, f"{name}: must be a list of objects")
    return value


def _with_usage_in_stream(raw: bytes, body: dict[str, Any]) -> tuple[bytes, tuple[str, ...]]:
    """A Chat stream reports usage only when asked, so the question is added; otherwise the bytes stay as they are."""
    if body.get("stream") is not True:
        return raw, ()
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") is True:
        return raw, ()
    if options is None and "stream_options" not in body:
        start = raw.index(b"{") + 1
        return raw[:start] + b'"stream_options":{"include_usage":true},' + raw[start:], (
            "stream_options.include_usage",
        )
    if options is not None and not isinstance(options, dict):
        raise Refused(400, "stream_options: must be an object")
    changed = body | {"stream_options": {**(options or {}), "include_usage": True}}
    return json.dumps(changed).encode(), ("stream_options.include_usage",)


def refusal_body(dialect: Dialect | None, refused: Refused) -> dict[str, Any]:
    """The refusal as the provider of that dialect would word an error of this status."""
    message = f"fairtrial meter: {refused.reason}"
    if dialect == "anthropic":
        kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
        return {"type": "error", "error": {"type": kinds.get(refused.status, "not_found_error"), "message": message}}
    code = "spend_limit_reached" if refused.limit else "request_refused"
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
