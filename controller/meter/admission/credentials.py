"""The run token, wherever the dialect's clients put it, and the query without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from controller.meter.admission.refusals import Refused

TOKEN_CHARS_MAX: Final = 512
KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
KEY_PARAMETER: Final = "key"


def token_of(headers: Iterable[tuple[str, str]], query: str = "") -> str:
    """The run token, from whichever credential header the harness uses, or from `key` in the query.

    Raises Refused(401) when there is none, or when two places carry different ones.
    """
    found = {value.strip() for name, value in parse_qsl(query) if name == KEY_PARAMETER and value.strip()}
    for name, value in headers:
        lowered = name.lower()
        if lowered == "authorization":
            scheme, _, token = value.strip().partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise Refused(401, "the authorization header must carry a bearer token")
            found.add(token.strip())
        elif lowered in KEY_HEADERS and value.strip():
            found.add(value.strip())
    if len(found) > 1:
        raise Refused(401, "two different credentials were sent")
    if not found:
        raise Refused(401, "no run token was sent")
    token = found.pop()
    if len(token) > TOKEN_CHARS_MAX or not token.isascii():
        raise Refused(401, "the run token is not known")
    return token


def without_key(query: str) -> str:
    """The query as it came, less every spelling of `key`: a token must reach neither a log nor a provider."""
    kept = [part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != KEY_PARAMETER]
    return "&".join(part for part in kept if part)
