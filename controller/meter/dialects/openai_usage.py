"""OpenAI's usage objects in disjoint classes: cached and written tokens lie inside the input, reasoning in the output.

Sources: the provider's prompt-caching, priority and flex pages, and its SDK's response types.
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
    needed,
    section,
    tokens_of,
)

TIERS: Final = {"default": "standard", "auto": "standard", "standard": "standard"}
CHAT_KNOWN: Final = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details.cached_tokens",
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_write_tokens_details.ttl_30m_tokens",
        "prompt_tokens_details.cache_write_tokens_details.ttl_12h_tokens",
        "prompt_tokens_details.audio_tokens",
        "prompt_tokens_details.image_tokens",
        "prompt_tokens_details.text_tokens",
        "completion_tokens_details.reasoning_tokens",
        "completion_tokens_details.accepted_prediction_tokens",
        "completion_tokens_details.rejected_prediction_tokens",  # billed, and inside completion_tokens
        "completion_tokens_details.audio_tokens",
        "completion_tokens_details.image_tokens",
        "completion_tokens_details.text_tokens",
    }
)
RESPONSES_KNOWN: Final = frozenset(
    path.replace("prompt_tokens", "input_tokens").replace("completion_tokens", "output_tokens") for path in CHAT_KNOWN
)
LIFETIMES: Final = ("30m", "12h")
# Items whose calls are charged apart and counted nowhere in the answer.
CHARGED_APART: Final = ("code_interpreter_call", "file_search_call")


def chat_usage_of(raw: Mapping[str, Any]) -> Counted:
    """Disjoint classes of one Chat usage object. Raises UnpricedUsage when it contradicts itself or is not known."""
    check_usage(raw, CHAT_KNOWN)
    return _counted(raw, "prompt_tokens", "completion_tokens", None)


def responses_usage_of(raw: Mapping[str, Any], lifetime: object = None) -> Counted:
    """As `chat_usage_of`, for Responses. `lifetime` is the one that the answer says was given to its cache writes."""
    check_usage(raw, RESPONSES_KNOWN)
    return _counted(raw, "input_tokens", "output_tokens", lifetime)


def _counted(raw: Mapping[str, Any], input_name: str, output_name: str, lifetime: object) -> Counted:
    total_in, total_out = needed(raw, input_name), needed(raw, output_name)
    if raw.get("total_tokens") is not None:
        check_sum(total_in + total_out, counter(raw, "total_tokens"), "usage.total_tokens")
    where = f"usage.{input_name}_details"
    inside = section(raw, f"{input_name}_details")
    cached = counter(inside, "cached_tokens", where=where)
    half_hour, half_day, assumes = _written(inside, lifetime, where)
    audio, image = (counter(inside, f"{kind}_tokens", where=where) for kind in ("audio", "image"))
    if audio + image and cached + half_hour + half_day:
        raise UnpricedUsage(f"{where}: nothing says which of the cached tokens are audio or image")
    check_part(cached + half_hour + half_day + audio + image, total_in, where)
    check_part(counter(inside, "text_tokens", where=where) + audio + image, total_in, f"{where}.text_tokens")
    text_out, audio_out, image_out = _output(raw, output_name, total_out)
    tokens = tokens_of(
        in_=total_in - cached - half_hour - half_day - audio - image,
        read=cached,
        w30m=half_hour,
        w12h=half_day,
        in_audio=audio,
        in_image=image,
        out=text_out,
        out_audio=audio_out,
        out_image=image_out,
    )
    return Counted(usage=Usage(tokens=tokens), assumes_lifetime=assumes)


def _written(inside: Mapping[str, Any], lifetime: object, where: str) -> tuple[int, int, bool]:
    """Tokens written for 30 minutes and for 12 hours, and whether the default of 30 minutes was assumed."""
    written = counter(inside, "cache_write_tokens", where=where)
    split = section(inside, "cache_write_tokens_details", where=where)
    if split:
        half_hour = counter(split, "ttl_30m_tokens", where=f"{where}.cache_write_tokens_details")
        half_day = counter(split, "ttl_12h_tokens", where=f"{where}.cache_write_tokens_details")
        if inside.get("cache_write_tokens") is not None:
            check_sum(half_hour + half_day, written, f"{where}.cache_write_tokens")
        return half_hour, half_day, False
    if written and lifetime is not None and lifetime not in LIFETIMES:
        raise UnpricedUsage(f"prompt_cache_options.ttl: {lifetime!r:.80} is no lifetime this dialect knows")
    return (0, written, False) if lifetime == "12h" else (written, 0, written > 0 and lifetime is None)


def _output(raw: Mapping[str, Any], output_name: str, total: int) -> tuple[int, int, int]:
    """Text, with its reasoning, audio and image output."""
    where = f"usage.{output_name}_details"
    outside = section(raw, f"{output_name}_details")
    audio, image = (counter(outside, f"{kind}_tokens", where=where) for kind in ("audio", "image"))
    check_part(audio + image, total, where)
    for kind in ("reasoning", "accepted_prediction", "rejected_prediction", "text"):
        part = counter(outside, f"{kind}_tokens", where=where)
        check_part(part, total - audio - image, f"{where}.{kind}_tokens")
    return total - audio - image, audio, image


def tool_units(tool_usage: object, kinds: frozenset[str]) -> dict[str, int]:
    """Billable calls of a Responses answer whose items are of these kinds. A count that is missing is not zero.

    Raises UnpricedUsage for calls that are charged apart, and for a counter that is not known.
    """
    for kind in CHARGED_APART:
        if kind in kinds:
            raise UnpricedUsage(f"output: {kind} is charged apart, and no field says how often")
    if tool_usage is None:
        if "web_search_call" in kinds:
            raise UnpricedUsage("tool_usage: missing, although the answer holds web searches")
        return {}
    if not isinstance(tool_usage, dict):
        raise UnpricedUsage("tool_usage is not an object")
    check_known(tool_usage, ("web_search.num_requests",), where="tool_usage")
    searches = counter(section(tool_usage, "web_search", where="tool_usage"), "num_requests", where="tool_usage")
    return {"web_search": searches} if searches else {}


def item_kinds(output: object) -> frozenset[str]:
    """The types of the items that the model or its tools put out."""
    items = output if isinstance(output, list) else []
    return frozenset(str(item.get("type"))[:80] for item in items if isinstance(item, dict))
