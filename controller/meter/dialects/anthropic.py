"""Anthropic Messages: cache reads and writes lie outside `input_tokens`; stream deltas are cumulative.

Sources: the provider's pricing, prompt-caching, streaming and refusals pages, and its SDK's stream accumulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import (
    Reading,
    check_known,
    check_usage,
    counter,
    entries,
    section,
    text_or_none,
    tokens_of,
)
from controller.meter.wire_json import record

REFUSAL_RULE: Final = "anthropic: a refusal before any output is not billed"
KNOWN: Final = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation.ephemeral_5m_input_tokens",
        "cache_creation.ephemeral_1h_input_tokens",
        "output_tokens_details.thinking_tokens",  # a subset of output_tokens
        "server_tool_use.web_search_requests",
        "server_tool_use.web_fetch_requests",  # free: only its tokens are billed
        "iterations.*",  # read apart, entry by entry
        "fallback_credit.*",  # already moved inside the other counters
    }
)
REPLACED_WHEN_GIVEN: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "server_tool_use",
    "output_tokens_details",
    "iterations",
    "service_tier",
    "speed",
    "inference_geo",
)
TIERS: Final = {"standard": "standard", "priority": "priority", "batch": "batch"}
GEOS: Final = {"global": "global", "not_available": "global"}


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """Disjoint classes of one usage object. Raises UnpricedUsage when it contradicts itself or is not understood."""
    check_usage(raw, KNOWN)
    totals = _classes(raw, "usage")
    for position, entry in enumerate(entries(raw, "iterations")):
        where = f"usage.iterations[{position}]"
        kind = entry.get("type")
        if kind == "message":  # the top-level counters are the sum of these
            continue
        if kind != "compaction":
            raise UnpricedUsage(f"{where}.type: {kind!r} is not priced here")
        check_known(entry, KNOWN)
        extra = _classes(entry, where)
        totals = {name: totals[name] + extra[name] for name in totals}
    searches = counter(section(raw, "server_tool_use"), "web_search_requests", where="usage.server_tool_use")
    return Usage(tokens=tokens_of(**totals), units={"web_search": searches} if searches else {})


def _classes(raw: Mapping[str, Any], where: str) -> dict[str, int]:
    written = counter(raw, "cache_creation_input_tokens", where=where)
    split = section(raw, "cache_creation", where=where)
    five = counter(split, "ephemeral_5m_input_tokens", where=f"{where}.cache_creation")
    hour = counter(split, "ephemeral_1h_input_tokens", where=f"{where}.cache_creation")
    if not split:
        five = written  # the documented default lifetime of a cache write is five minutes
    elif raw.get("cache_creation_input_tokens") is not None and five + hour != written:
        raise UnpricedUsage(f"{where}.cache_creation: {five} + {hour} is not the total {written}")
    return {
        "in_": counter(raw, "input_tokens", where=where),
        "read": counter(raw, "cache_read_input_tokens", where=where),
        "w5m": five,
        "w1h": hour,
        "out": counter(raw, "output_tokens", where=where),
    }


class AnthropicReader:
    """Reads one Messages response."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._stop_reason: object = None
        self._output_begun = False
        self._complete = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response."""
        if payload.get("type") == "error" or payload.get("error") is not None:
            self._error = "the answer is an error"
        self._start(payload)
        self._stop_reason = payload.get("stop_reason")
        self._output_begun = bool(payload.get("content"))
        self._complete = self._usage is not None

    def event(self, name: str, data: bytes) -> None:
        """One stream event; unknown ones are tolerated, as the provider asks."""
        if name in ("content_block_delta", "content_block_stop", "ping"):
            return
        payload = record(data)
        kind = name or payload.get("type")
        if self._complete and kind in ("message_start", "message_delta"):
            self._error = "usage was sent after the end of the message"
        elif kind == "message_start":
            self._start(payload.get("message"))
        elif kind == "content_block_start":
            self._output_begun = True
        elif kind == "message_delta":
            delta = payload.get("delta")
            if isinstance(delta, dict) and delta.get("stop_reason") is not None:
                self._stop_reason = delta["stop_reason"]
            self._merge(payload.get("usage"))
        elif kind == "message_stop":
            self._complete = True
        elif kind == "error":
            self._error = "the stream ended with an error event"

    def _start(self, message: object) -> None:
        if isinstance(message, dict):
            self._message = {"id": message.get("id"), "model": message.get("model")}
            self._merge(message.get("usage"))

    def _merge(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        merged = self._usage or {}
        for key, value in usage.items():
            # A null or absent counter in a delta keeps what message_start said; an explicit zero replaces it.
            if value is not None or key not in merged or key not in REPLACED_WHEN_GIVEN:
                merged[key] = value
        self._usage = merged

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        raw = self._usage
        refused = self._stop_reason == "refusal" and not self._output_begun
        return Reading(
            complete=self._complete and self._error is None,
            final=self._complete,
            usage=None if raw is None else usage_of(raw),
            message_id=text_or_none(self._message.get("id")),
            model=text_or_none(self._message.get("model")),
            tier=_named(raw, "service_tier", TIERS, "standard"),
            speed=text_or_none((raw or {}).get("speed")) or "standard",
            geo=_named(raw, "inference_geo", GEOS, "global"),
            zero_bill_rule=REFUSAL_RULE if refused and self._complete else None,
            raw=raw or {},
            error=self._error,
        )


def _named(raw: Mapping[str, Any] | None, key: str, names: Mapping[str, str], default: str) -> str:
    value = (raw or {}).get(key)
    if value is None or value == "":
        return default
    return names.get(str(value), str(value))
