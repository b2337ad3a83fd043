"""Anthropic's usage object in disjoint classes: cache reads and writes lie outside `input_tokens`.

Sources: the provider's pricing, prompt-caching, compaction and fallback pages, and its SDK's types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import (
    Counted,
    check_known,
    check_part,
    check_sum,
    check_usage,
    counter,
    entries,
    needed,
    section,
    tokens_of,
)

_COUNTERS: Final = frozenset(
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
    }
)
KNOWN: Final = _COUNTERS | {
    "iterations.*",  # read apart, entry by entry
    "fallback_credit.*",  # already moved inside the other counters
}
# What a sampling inside the request is to the counters above it.
INSIDE: Final = ("message", "fallback_message")
OUTSIDE: Final = ("compaction",)


def usage_of(raw: Mapping[str, Any]) -> Counted:
    """Disjoint classes of one usage object. Raises UnpricedUsage when it contradicts itself or is not understood."""
    check_usage(raw, KNOWN)
    totals, assumes = _classes(raw, "usage")
    samplings = entries(raw, "iterations")
    kinds = [_kind(entry, f"usage.iterations[{position}]") for position, entry in enumerate(samplings)]
    inside = {"in_": 0, "out": 0}
    for position, (entry, kind) in enumerate(zip(samplings, kinds, strict=True)):
        where = f"usage.iterations[{position}]"
        check_known(entry, _COUNTERS, where=where)
        classes, unsplit = _classes(entry, where)
        if kind in OUTSIDE:
            totals = {name: totals[name] + classes[name] for name in totals}
            assumes = assumes or unsplit
        else:
            inside = {name: inside[name] + classes[name] for name in inside}
    # After a fallback the counters hold the serving model's part only; otherwise they are the sum of its samplings.
    if "message" in kinds and "fallback_message" not in kinds:
        check_sum(inside["in_"], counter(raw, "input_tokens"), "usage.input_tokens")
        check_sum(inside["out"], counter(raw, "output_tokens"), "usage.output_tokens")
    searches = counter(section(raw, "server_tool_use"), "web_search_requests", where="usage.server_tool_use")
    return Counted(
        usage=Usage(tokens=tokens_of(**totals), units={"web_search": searches} if searches else {}),
        assumes_lifetime=assumes,
        samplings=max(1, len(samplings)),
    )


def _kind(entry: Mapping[str, Any], where: str) -> str:
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in (*INSIDE, *OUTSIDE):
        # An advisor is another model with prices of its own.
        raise UnpricedUsage(f"{where}.type: {kind!r:.80} is not priced here")
    return kind


def _classes(raw: Mapping[str, Any], where: str) -> tuple[dict[str, int], bool]:
    """The classes, and whether cache writes came without their lifetimes.

    The documented default lifetime of a write is five minutes, so a total without a split is read as that.
    """
    written = counter(raw, "cache_creation_input_tokens", where=where)
    split = section(raw, "cache_creation", where=where)
    five = counter(split, "ephemeral_5m_input_tokens", where=f"{where}.cache_creation")
    hour = counter(split, "ephemeral_1h_input_tokens", where=f"{where}.cache_creation")
    if not split:
        five = written
    elif raw.get("cache_creation_input_tokens") is not None:
        check_sum(five + hour, written, f"{where}.cache_creation_input_tokens")
    out = needed(raw, "output_tokens", where=where)
    thinking = counter(section(raw, "output_tokens_details", where=where), "thinking_tokens", where=where)
    check_part(thinking, out, f"{where}.output_tokens_details.thinking_tokens")
    classes = {
        "in_": needed(raw, "input_tokens", where=where),
        "read": counter(raw, "cache_read_input_tokens", where=where),
        "w5m": five,
        "w1h": hour,
        "out": out,
    }
    return classes, not split and written > 0
