"""Which headers pass the meter, in both directions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.domain.usage import Dialect
from controller.meter.admission import Refused

# Hop-by-hop fields, credentials, traces of the path, and fields that would pick another account or repeat a charge.
REQUEST_HEADERS_DROPPED: Final = frozenset(
    {
        "accept-encoding",
        "anthropic-user-profile",
        "anthropic-workspace-id",
        "api-key",
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "idempotency-key",
        "keep-alive",
        "openai-organization",
        "openai-project",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
        "x-api-key",
        "x-goog-api-key",
        "x-goog-user-project",
        "x-request-id",
    }
)
REQUEST_PREFIXES_DROPPED: Final = ("x-forwarded-", "x-envoy-")
# What would change the answer's form or the call itself, so that the usage is no longer what was admitted. To drop them
# would leave the client with an answer that it did not ask for.
REQUEST_HEADERS_REFUSED: Final = frozenset({"x-goog-fieldmask", "x-http-method-override"})
CREDENTIALS: Final[Mapping[Dialect, tuple[str, str]]] = {
    "anthropic": ("x-api-key", ""),
    "gemini": ("x-goog-api-key", ""),
    "openai_chat": ("Authorization", "Bearer "),
    "openai_responses": ("Authorization", "Bearer "),
}
RESPONSE_HEADERS_DROPPED: Final = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Refuse what could not be forwarded as it came. Raises Refused(400) naming the field."""
    for name, value in headers:
        if not (name.isascii() and value.isascii() and value.replace("\t", " ").isprintable()):
            raise Refused(400, f"header {name[:40]!r} holds more than printable ASCII")
        if name.lower() in REQUEST_HEADERS_REFUSED:
            raise Refused(400, f"header {name!r} changes what is asked or answered, and is switched off")


def request_headers(headers: Iterable[tuple[str, str]], *, dialect: Dialect, key: str) -> list[tuple[str, str]]:
    """The headers to forward: the harness's own, less what must not leave, plus the provider's key."""
    pairs = list(headers)
    named = {part.strip().lower() for name, value in pairs if name.lower() == "connection" for part in value.split(",")}
    kept = [
        (name, value)
        for name, value in pairs
        if (lowered := name.lower()) not in REQUEST_HEADERS_DROPPED
        and lowered not in named
        and not lowered.startswith(REQUEST_PREFIXES_DROPPED)
    ]
    name, scheme = CREDENTIALS[dialect]
    return [*kept, ("Accept-Encoding", "identity"), (name, scheme + key)]


def response_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The provider's headers as they came, less hop-by-hop fields and cookies."""
    return [(name, value) for name, value in headers if name.lower() not in RESPONSE_HEADERS_DROPPED]
