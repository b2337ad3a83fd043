"""Gemini's usage object in disjoint classes: cached tokens lie inside the prompt, thoughts outside the candidates.

Sources: the provider's field texts and pricing page, and its SDK's types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import (
    Counted,
    check_part,
    check_sum,
    check_usage,
    counter,
    entries,
    needed,
    tokens_of,
)

# Each total with the list that splits it by modality.
SPLIT: Final = {
    "promptTokenCount": "promptTokensDetails",
    "cachedContentTokenCount": "cacheTokensDetails",
    "candidatesTokenCount": "candidatesTokensDetails",
    "toolUsePromptTokenCount": "toolUsePromptTokensDetails",
}
KNOWN: Final = frozenset(
    {*SPLIT, "thoughtsTokenCount", "totalTokenCount", *(f"{d}.tokenCount" for d in SPLIT.values())}
)
TIERS: Final = {"unspecified": "standard", "default": "standard"}
TRAFFIC: Final = {
    "TRAFFIC_TYPE_UNSPECIFIED": "standard",
    "ON_DEMAND": "standard",
    "ON_DEMAND_PRIORITY": "priority",
    "ON_DEMAND_FLEX": "flex",
}


def usage_of(raw: Mapping[str, Any]) -> Counted:
    """Disjoint classes of one `usageMetadata`. Raises UnpricedUsage when its totals contradict their parts."""
    check_usage(raw, KNOWN)
    needed(raw, "promptTokenCount")
    prompt, cached, candidates, tools = (counter(raw, name) for name in SPLIT)
    by_prompt, by_cache, by_candidates, by_tools = (_modalities(raw, name) for name in SPLIT)
    thoughts = counter(raw, "thoughtsTokenCount")
    if raw.get("totalTokenCount") is not None:
        parts = prompt + candidates + thoughts + tools
        check_sum(parts, counter(raw, "totalTokenCount"), "usage.totalTokenCount")
    elif tools:
        raise UnpricedUsage("usage.totalTokenCount: missing, so whether tool use lies inside the prompt is not known")
    check_part(cached, prompt, "usage.cachedContentTokenCount")
    _only(by_tools, ("TEXT",), "usage.toolUsePromptTokensDetails")
    _only(by_cache, ("TEXT", "IMAGE"), "usage.cacheTokensDetails")  # cached audio has a price that no class carries
    _only(by_prompt, ("TEXT", "AUDIO", "IMAGE"), "usage.promptTokensDetails")
    _only(by_candidates, ("TEXT", "AUDIO", "IMAGE"), "usage.candidatesTokensDetails")
    audio, image = by_prompt["AUDIO"], by_prompt["IMAGE"]
    if cached and audio + image and not by_cache:
        raise UnpricedUsage("usage.cacheTokensDetails: missing, so which cached tokens are text is not known")
    check_part(by_cache["IMAGE"], image, "usage.cacheTokensDetails")
    image -= by_cache["IMAGE"]
    check_part(cached + audio + image, prompt, "usage.promptTokensDetails")
    tokens = tokens_of(
        in_=prompt - cached - audio - image + tools,
        read=cached,
        in_audio=audio,
        in_image=image,
        out=candidates - by_candidates["AUDIO"] - by_candidates["IMAGE"] + thoughts,
        out_audio=by_candidates["AUDIO"],
        out_image=by_candidates["IMAGE"],
    )
    return Counted(usage=Usage(tokens=tokens))


def _modalities(raw: Mapping[str, Any], total: str) -> Counter[str]:
    """Tokens by modality; empty when the answer does not split this total. What names no modality is text."""
    name = SPLIT[total]
    found: Counter[str] = Counter()
    for position, entry in enumerate(entries(raw, name)):
        modality = entry.get("modality") or "TEXT"
        found[str(modality)[:40]] += counter(entry, "tokenCount", where=f"usage.{name}[{position}]")
    if found:
        check_sum(sum(found.values()), counter(raw, total), f"usage.{total}")
    return found


def _only(found: Counter[str], allowed: tuple[str, ...], path: str) -> None:
    for modality, count in found.items():
        if count and modality not in allowed:
            raise UnpricedUsage(f"{path}: modality {modality!r} is not priced here")
