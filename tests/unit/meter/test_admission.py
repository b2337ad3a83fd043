"""What a request may do, form by form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.domain.money import usd_from_text
from controller.domain.rate_card import RateBand, RateCard, RateRow, nano_usd
from controller.domain.usage import Dialect
from controller.meter.admission import (
    BODY_BYTES_MAX,
    ROUTES,
    Admitted,
    Operation,
    Refused,
    admit,
    find_route,
    refusal_body,
    token_of,
)
from controller.meter.rules import LaneTerms, estimate_usd

PATHS: dict[Dialect, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}


def admitted(dialect: Dialect, body: object, *, betas: str = "") -> Admitted:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return admit(find_route("POST", PATHS[dialect], ""), raw, model="m", dialect=dialect, betas=betas)


def test_only_the_listed_forms_have_a_route() -> None:
    assert find_route("POST", "/v1/messages", "beta=true").operation is Operation.INFER
    assert find_route("GET", "/v1/models", "client_version=0.1&limit=3").operation is Operation.LIST_MODELS
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "/v1/messages", "", 404),
        ("POST", "/v1/messages/", "", 404),
        ("POST", "/v1//messages", "", 404),
        ("POST", "/v1/messages/batches", "", 404),
        ("POST", "http://elsewhere/v1/messages", "", 404),
        ("POST", "/v1/messages", "beta=false", 400),
        ("POST", "/v1/messages", "key=abc", 400),
        ("POST", "/v1/chat/completions", "beta=true", 400),
        ("POST", "/v1/messages", "beta", 400),
    ],
)
def test_other_forms_are_refused(method: str, path: str, query: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        find_route(method, path, query)
    assert refused.value.status == status


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer t")],
        [("authorization", "bearer  t ")],
        [("X-Api-Key", "t")],
        [("x-goog-api-key", "t"), ("x-api-key", "t"), ("Authorization", "Bearer t")],
    ],
)
def test_the_token_may_come_in_any_credential_header(headers: list[tuple[str, str]]) -> None:
    assert token_of(headers) == "t"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("x-api-key", "a"), ("Authorization", "Bearer b")],
        [("x-api-key", "a"), ("x-api-key", "b")],
        [("Authorization", "Basic dDp0")],
        [("Authorization", "Bearer ")],
        [("x-api-key", "a" * 600)],
    ],
)
def test_none_or_two_tokens_are_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Refused) as refused:
        token_of(headers)
    assert refused.value.status == 401


OFF: list[tuple[Dialect, dict[str, Any]]] = [
    ("anthropic", {"fallbacks": [{"model": "x"}]}),
    ("anthropic", {"mcp_servers": [{"url": "x"}]}),
    ("anthropic", {"speed": "fast"}),
    ("anthropic", {"service_tier": "priority"}),
    ("anthropic", {"inference_geo": "us"}),
    ("anthropic", {"tools": [{"type": "web_search_20260209", "name": "web_search"}]}),
    ("anthropic", {"tools": [{"type": "code_execution_20260120"}]}),
    ("anthropic", {"tools": [{"type": "bash_web_search"}]}),
    ("anthropic", {"tools": [{"type": "bash_20250124_web_search"}]}),
    ("anthropic", {"tools": "all"}),
    ("anthropic", {"max_tokens": "many"}),
    ("openai_chat", {"n": 2}),
    ("openai_chat", {"service_tier": "flex"}),
    ("openai_chat", {"modalities": ["text", "audio"]}),
    ("openai_chat", {"prediction": {"type": "content"}}),
    ("openai_chat", {"web_search_options": {"x": 1}}),
    ("openai_chat", {"web_search_options": {}}),
    ("openai_chat", {"stream": 1}),
    ("openai_chat", {"stream": "true"}),
    ("openai_responses", {"prompt": {}}),
    ("anthropic", {"container": {}}),
    ("openai_chat", {"max_completion_tokens": -1}),
    ("openai_chat", {"stream": True, "stream_options": "all"}),
    ("openai_chat", {"usage": {"include": True, "plugins": 1}}),
    ("openai_responses", {"background": True}),
    ("openai_responses", {"previous_response_id": "resp_1"}),
    ("openai_responses", {"tools": [{"type": "web_search"}]}),
    ("openai_responses", {"tools": [{"type": "code_interpreter"}]}),
    ("openai_responses", {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}),
    ("openai_responses", {"tools": [{"type": "namespace", "tools": [{"type": "web_search"}]}]}),
    ("openai_responses", {"model": "other"}),
    ("anthropic", {"fallback_credit_token": "t"}),
    ("anthropic", {"billing_policy": {"x": 1}}),
    ("anthropic", {"container": "c"}),
    ("anthropic", {"thread": {"id": "t"}}),
    ("anthropic", {"user_profile_id": "u"}),
    ("anthropic", {"workspace_id": "w"}),
    ("openai_chat", {"audio": {"voice": "x"}}),
    ("openai_chat", {"moderation": {"model": "x"}}),
    ("openai_chat", {"n": True}),
    ("openai_chat", {"max_tokens": True}),
    ("openai_responses", {"context_management": [{"type": "compaction"}]}),
    ("openai_responses", {"conversation": "conv_1"}),
    ("openai_responses", {"prompt": {"id": "p"}}),
    ("openai_responses", {"service_tier": "fast"}),
    ("openai_responses", {"tools": [{"type": "namespace", "tools": [{"type": "namespace", "tools": []}]}]}),
    ("openai_responses", {"max_output_tokens": 1.5}),
]


@pytest.mark.parametrize(("dialect", "extra"), OFF, ids=lambda value: str(value)[:60])
def test_features_that_would_bend_the_comparison_are_refused(dialect: Dialect, extra: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        admitted(dialect, {"model": "m"} | extra)
    assert refused.value.status == 400 and not refused.value.limit
    assert next(iter(extra)).split("_")[0] in refused.value.reason or "tools" in refused.value.reason


@pytest.mark.parametrize(
    ("dialect", "extra"),
    [
        ("anthropic", {"max_tokens": 8, "tools": [{"name": "Bash", "input_schema": {}}, {"type": "bash_20250124"}]}),
        ("anthropic", {"service_tier": "standard_only", "fallbacks": [], "speed": None}),
        ("openai_chat", {"n": 1, "tools": [{"type": "function"}], "stream": False}),
        ("openai_responses", {"tools": [{"type": "custom"}, {"type": "local_shell"}], "store": False}),
        ("openai_responses", {"tools": [{"type": "namespace", "tools": [{"type": "function"}]}]}),
        ("openai_responses", {"tools": [{"type": "shell", "environment": {"type": "local"}}]}),
        ("openai_chat", {"usage": {"include": True}, "drop_params": True}),  # mini-swe-agent's own client
    ],
)
def test_ordinary_requests_pass_byte_for_byte(dialect: Dialect, extra: dict[str, Any]) -> None:
    raw = json.dumps({"model": "m"} | extra, indent=3).encode()
    assert admitted(dialect, raw) == Admitted(raw, (), extra.get("max_tokens"))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"model":"m","model":"m"}',
        b'{"model":"m","x":NaN}',
        b"\xff",
        b'{"model":"m"} {}',
        b"[" * 90_000,
    ],
)
def test_a_body_that_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        admitted("openai_chat", raw)
    assert refused.value.status == 400


BETAS_OF_CLAUDE_CODE = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
    "mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,"
    "effort-2025-11-24"
)


def test_the_betas_that_a_harness_needs_pass() -> None:
    assert admitted("anthropic", {"model": "m"}, betas=f"{BETAS_OF_CLAUDE_CODE}, Context-1M-2025-08-07,").changes == ()


@pytest.mark.parametrize(
    "beta",
    [
        "fast-mode-2026-02-01",
        "server-side-fallback-2026-06-01",
        "fallback-credit-2026-06-01",
        "advisor-tool-2026-03-01",
        "mcp-client-2025-11-20",
        "code-execution-2025-05-22",
        "web-search-2025-03-05",
        "files-api-2025-04-14",
        "skills-2025-10-02",
        "something-new-2027-01-01",
        "effort-tier-2027-01-01",
    ],
)
def test_any_other_beta_is_refused_and_not_dropped(beta: str) -> None:
    with pytest.raises(Refused, match=f"anthropic-beta: '{beta}'") as refused:
        admitted("anthropic", {"model": "m"}, betas=f"claude-code-20250219, {beta}")
    assert refused.value.status == 400


LIMITS: dict[Dialect, tuple[str, ...]] = {
    "anthropic": ("max_tokens",),
    "openai_chat": ("max_tokens", "max_completion_tokens"),
    "openai_responses": ("max_output_tokens",),
}


@pytest.mark.parametrize("limit", [10**9 + 1, 10**18, 10**4_000])
@pytest.mark.parametrize(("dialect", "name"), [(dialect, name) for dialect, names in LIMITS.items() for name in names])
def test_a_limit_beyond_any_answer_is_refused_before_a_ledger_must_hold_its_cost(
    dialect: Dialect, name: str, limit: int
) -> None:
    with pytest.raises(Refused, match=f"{name}: must be at most 1000000000 tokens") as refused:
        admitted(dialect, {"model": "m", name: limit})
    assert refused.value.status == 400


def test_the_highest_limit_at_the_highest_price_is_an_amount_that_a_ledger_holds() -> None:
    limit = admitted("anthropic", {"model": "m", "max_tokens": 10**9}).output_tokens
    dearest = RateBand(over=0, nano_usd_per_million={"in": nano_usd("9000000"), "out": nano_usd("9000000")})
    row = RateRow(provider="p", model="m", source="invented", retrieved_on="2026-01-01", bands=(dearest,))
    lane = LaneTerms("p", "m", ("m",), "standard")
    bound = estimate_usd(lane, RateCard(name="c", rows=(row,)), body_bytes=BODY_BYTES_MAX, output_tokens=limit)
    assert usd_from_text(bound) >= 9_000_000_000  # 10^9 tokens at 9 dollars each


@pytest.mark.parametrize("dialect", PATHS)
def test_a_field_that_is_not_known_is_refused_by_name(dialect: Dialect) -> None:
    with pytest.raises(Refused, match="brand_new_switch: the meter does not know this field"):
        admitted(dialect, {"model": "m", "brand_new_switch": None})


@pytest.mark.parametrize(
    ("dialect", "body", "asks"),
    [
        ("anthropic", {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}, False),
        ("anthropic", {"system": [{"cache_control": {"type": "ephemeral", "ttl": "5m"}}]}, False),
        ("anthropic", {"tools": [{"name": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}, True),
        ("anthropic", {"messages": [{"content": [{"content": [{"cache_control": {"ttl": "1h"}}]}]}]}, True),
        ("anthropic", {"messages": [{"role": "user", "content": 'say "ttl": "1h"'}]}, False),
        ("openai_responses", {"prompt_cache_options": {"ttl": "30m"}}, False),
        ("openai_responses", {"prompt_cache_options": {"ttl": "12h"}}, True),
        ("openai_chat", {"prompt_cache_options": {"ttl": "12h"}}, True),
        ("openai_chat", {"prompt_cache_options": None}, False),
    ],
)
def test_a_lifetime_other_than_the_default_is_noticed(dialect: Dialect, body: dict[str, Any], asks: bool) -> None:
    assert admitted(dialect, {"model": "m"} | body).asks_lifetime is asks


def test_an_escaped_lifetime_is_noticed_too() -> None:
    raw = rb'{"model":"m","cache_control":{"\u0074tl":"1h"}}'
    assert admitted("anthropic", raw).asks_lifetime


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m","stream":true}',
        b' {\n "stream": true, "model":"m"}',
        b'{"model":"m","stream":true,"stream_options":null}',
        b'{"model":"m","stream":true,"stream_options":{"include_usage":false,"x":1}}',
    ],
)
def test_a_chat_stream_is_made_to_report_usage(raw: bytes) -> None:
    result = admitted("openai_chat", raw)
    before, after = json.loads(raw), json.loads(result.body)
    assert after.pop("stream_options")["include_usage"] is True
    before.pop("stream_options", None)
    assert after == before and result.changes == ("stream_options.include_usage",)


@pytest.mark.parametrize("token", ["\xff", "t\u00f6ken", "\udcff"])
@pytest.mark.parametrize("header", ["x-api-key", "x-goog-api-key", "Authorization"])
def test_a_token_that_is_no_ascii_is_not_known(header: str, token: str) -> None:
    with pytest.raises(Refused, match="not known") as refused:
        token_of([(header, f"Bearer {token}" if header == "Authorization" else token)])
    assert refused.value.status == 401


def test_a_dialect_other_than_the_attempts_is_refused() -> None:
    with pytest.raises(Refused, match="dialect"):
        admit(find_route("POST", "/v1/messages", ""), b"{}", model="m", dialect="openai_chat")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_refusals_speak_the_providers_form(status: int) -> None:
    refused = Refused(status, "why", limit=status == 403)
    anthropic = refusal_body("anthropic", refused)
    assert anthropic["type"] == "error" and anthropic["error"]["message"].endswith("why")
    openai = refusal_body("openai_chat", refused)["error"]
    assert set(openai) == {"message", "type", "param", "code"}
    gemini = refusal_body("gemini", refused)["error"]
    assert set(gemini) == {"code", "message", "status"} and gemini["code"] == status
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
    assert gemini["status"] == names[status]
    assert (openai["code"] == "spend_limit_reached") is refused.limit
