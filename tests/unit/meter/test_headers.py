"""Header by header: what leaves the meter, and what comes back."""

from __future__ import annotations

import pytest

from controller.domain.usage import Dialect
from controller.meter.admission import Refused
from controller.meter.headers import check_headers, request_headers, response_headers

DROPPED = [
    "Host",
    "Authorization",
    "Proxy-Authorization",
    "X-Api-Key",
    "X-Goog-Api-Key",
    "Api-Key",
    "Cookie",
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Content-Length",
    "Expect",
    "Upgrade",
    "Accept-Encoding",
    "OpenAI-Organization",
    "OpenAI-Project",
    "Anthropic-Workspace-Id",
    "Anthropic-User-Profile",
    "Idempotency-Key",
    "X-Goog-User-Project",
    "X-Request-Id",
    "X-Envoy-Expected-Rq-Timeout-Ms",
]
KEPT = [
    "Content-Type",
    "Accept",
    "Anthropic-Version",
    "Anthropic-Beta",
    "User-Agent",
    "X-Stainless-Retry-Count",
    "X-Stainless-Lang",
    "X-Stainless-Helper-Method",
    "X-Claude-Code-Session-Id",
    "X-Claude-Code-Agent-Id",
    "X-Goog-Api-Client",
    "originator",
    "session-id",
]
CREDENTIALS: list[tuple[Dialect, tuple[str, str]]] = [
    ("anthropic", ("x-api-key", "k")),
    ("gemini", ("x-goog-api-key", "k")),
    ("openai_chat", ("Authorization", "Bearer k")),
    ("openai_responses", ("Authorization", "Bearer k")),
]


def sent(name: str, value: str = "v", *, dialect: Dialect = "anthropic") -> list[tuple[str, str]]:
    return request_headers([(name, value)], dialect=dialect, key="k")


@pytest.mark.parametrize("spelled", [str, str.lower, str.upper], ids=["as documented", "lower", "upper"])
@pytest.mark.parametrize("name", DROPPED)
def test_a_header_that_must_not_leave_does_not(name: str, spelled: type[str]) -> None:
    assert "v" not in [value for _, value in sent(spelled(name))]


@pytest.mark.parametrize("name", KEPT)
def test_a_header_that_a_provider_needs_passes_as_it_came(name: str) -> None:
    assert sent(name)[0] == (name, "v")


@pytest.mark.parametrize(("dialect", "credential"), CREDENTIALS)
def test_the_key_goes_where_the_provider_looks_for_it(dialect: Dialect, credential: tuple[str, str]) -> None:
    assert sent("x-api-key", dialect=dialect) == [("Accept-Encoding", "identity"), credential]


def test_what_the_connection_names_is_its_own() -> None:
    pairs = [("Connection", "close, X-Private"), ("x-private", "1"), ("connection", "x-other"), ("X-Other", "2")]
    assert request_headers(pairs, dialect="gemini", key="k") == [
        ("Accept-Encoding", "identity"),
        ("x-goog-api-key", "k"),
    ]


def test_a_header_that_comes_twice_stays_twice() -> None:
    pairs = [("anthropic-beta", "a"), ("anthropic-beta", "b")]
    assert request_headers(pairs, dialect="anthropic", key="k")[:2] == pairs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Goog-FieldMask", "candidates"),
        ("x-http-method-override", "GET"),
        ("x-caf\u00e9", "v"),
        ("x-a", "caf\u00e9"),
        ("x-a", "a\x00b"),
        ("x-a", "a\x7fb"),
    ],
)
def test_what_could_not_be_forwarded_as_meant_is_refused(name: str, value: str) -> None:
    with pytest.raises(Refused) as refused:
        check_headers([("accept", "*/*"), (name, value)])
    assert refused.value.status == 400 and name[:3].lower() in refused.value.reason.lower()


def test_ordinary_headers_are_no_ground_for_a_refusal() -> None:
    check_headers([(name, "a\tb c") for name in (*DROPPED, *KEPT)])


PROVIDERS_OWN = [
    ("request-id", "r"),
    ("x-request-id", "r"),
    ("retry-after", "3"),
    ("anthropic-ratelimit-requests-remaining", "1"),
    ("x-ratelimit-remaining-tokens", "1"),
    ("openai-processing-ms", "7"),
    ("Content-Type", "text/event-stream"),
    ("x-gemini-service-tier", "standard"),
]


def test_the_providers_headers_come_back_as_they_were() -> None:
    assert response_headers(PROVIDERS_OWN) == PROVIDERS_OWN


@pytest.mark.parametrize("name", ["Set-Cookie", "Transfer-Encoding", "Connection", "Content-Length", "Keep-Alive"])
def test_cookies_and_hop_by_hop_fields_do_not_come_back(name: str) -> None:
    assert response_headers([(name, "v"), ("request-id", "r")]) == [("request-id", "r")]
