"""Bedrock Converse, for pricing records: cache buckets lie outside the input; one metadata event ends a stream.

A model that is called through InvokeModel or Vertex's rawPredict answers in its own dialect and is read with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import (
    Counted,
    Reading,
    check_sum,
    check_usage,
    counter,
    entries,
    label,
    needed,
    section,
    tokens_of,
)
from controller.meter.wire_json import record

KNOWN: Final = frozenset(
    {
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cacheReadInputTokens",
        "cacheWriteInputTokens",
        "cacheDetails.inputTokens",
    }
)
LIFETIMES: Final = {"5m": "w5m", "1h": "w1h"}
TIERS: Final = {"default": "standard"}
METADATA: Final = "metadata"


def usage_of(raw: Mapping[str, Any]) -> Counted:
    """Disjoint classes of one Converse usage object. Raises UnpricedUsage when its total contradicts its parts."""
    check_usage(raw, KNOWN)
    plain, out = needed(raw, "inputTokens"), needed(raw, "outputTokens")
    read, written = counter(raw, "cacheReadInputTokens"), counter(raw, "cacheWriteInputTokens")
    details = entries(raw, "cacheDetails")
    by_lifetime: Counter[str] = Counter()
    for position, entry in enumerate(details):
        where = f"usage.cacheDetails[{position}]"
        lifetime = LIFETIMES.get(str(entry.get("ttl")))
        if lifetime is None:
            raise UnpricedUsage(f"{where}.ttl: {entry.get('ttl')!r:.80} is no lifetime this dialect knows")
        by_lifetime[lifetime] += counter(entry, "inputTokens", where=where)
    if details:
        check_sum(sum(by_lifetime.values()), written, "usage.cacheWriteInputTokens")
    else:
        by_lifetime["w5m"] = written  # the documented default lifetime of a write is five minutes
    if raw.get("totalTokens") is not None:
        check_sum(plain + out + read + written, counter(raw, "totalTokens"), "usage.totalTokens")
    tokens = tokens_of(in_=plain, read=read, w5m=by_lifetime["w5m"], w1h=by_lifetime["w1h"], out=out)
    return Counted(usage=Usage(tokens=tokens), assumes_lifetime=written > 0 and not details)


class BedrockReader:
    """Reads a whole Converse response, its metadata alone, or the unframed events of one stream."""

    def __init__(self) -> None:
        self._metadata: Mapping[str, Any] = {}
        self._seen = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response, or an object that holds the metadata event."""
        self._note(section(payload, METADATA, where="response") or payload)

    def event(self, name: str, data: bytes) -> None:
        """One event: its name with its fields, or one object in which the fields stand under the name."""
        payload = record(data)
        if not name and len(payload) == 1:
            ((name, inner),) = payload.items()
            payload = inner if isinstance(inner, dict) else {}
        if name.endswith("Exception"):
            self._error = f"the stream carried {name[:80]}"
        elif name == METADATA and self._seen:
            self._error = "the stream carried its usage twice"
        elif name == METADATA:
            self._note(payload)

    def _note(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self._seen = isinstance(metadata.get("usage"), dict)

    def seen(self) -> Reading:
        """The usage as it came; a Converse answer names neither itself nor its model. See Reader."""
        raw = dict(self._metadata["usage"]) if self._seen else {}
        complete = self._seen and self._error is None
        return Reading(complete=complete, final=self._seen, raw=raw, error=self._error)

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        seen = self.seen()
        counted = usage_of(seen.raw) if self._seen else None
        return replace(
            seen,
            usage=counted.usage if counted else None,
            tier=label(section(self._metadata, "serviceTier", where=METADATA), "type", TIERS, "standard"),
            speed=label(section(self._metadata, "performanceConfig", where=METADATA), "latency", {}, "standard"),
            assumes_lifetime=counted.assumes_lifetime if counted else False,
        )
