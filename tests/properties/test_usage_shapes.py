"""Whatever a provider sends as usage, it is priced or refused by name; nothing else can happen."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.domain.rate_card import RateBand, RateCard, RateRow, TokenClass
from controller.errors import UnpricedUsage
from controller.meter import price_usage
from controller.meter.dialects import READERS
from controller.meter.dialects.anthropic_usage import KNOWN as ANTHROPIC
from controller.meter.dialects.bedrock import KNOWN as BEDROCK
from controller.meter.dialects.gemini_usage import KNOWN as GEMINI
from controller.meter.dialects.openai_usage import CHAT_KNOWN, RESPONSES_KNOWN
from controller.meter.pricing import Priced

_PRICES: dict[TokenClass, int] = dict.fromkeys(get_args(TokenClass), 2**53 - 1)
CARD = RateCard(
    name="dear",
    rows=(
        RateRow(
            provider="p",
            model="m",
            source="a test",
            retrieved_on="2026-01-01",
            bands=(RateBand(over=0, nano_usd_per_million=_PRICES),),
        ),
    ),
)
NAMES = sorted(
    {
        part
        for known in (ANTHROPIC, BEDROCK, GEMINI, CHAT_KNOWN, RESPONSES_KNOWN)
        for path in known
        for part in path.split(".")
    }
    | {"service_tier", "speed", "inference_geo", "type", "modality", "tokenCount", "surprise"}
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5_000),
    st.sampled_from([2**53, 10**12 + 1, 10**4200, -(10**4200)]),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(["", "standard", "message", "compaction", "TEXT", "x"]),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)),
    max_leaves=12,
)
USAGE = st.one_of(JSON, st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6))


@pytest.mark.parametrize("dialect", sorted(READERS))
@given(usage=USAGE, other=JSON)
def test_a_whole_answer_is_read_or_refused(dialect: str, usage: Any, other: Any) -> None:
    reader = READERS[dialect]()
    payload = {
        "usage": usage,
        "usageMetadata": usage,
        "tool_usage": other,
        "id": other,
        "model": other,
        "status": other,
    }
    try:
        reader.body(payload)
        reading = reader.reading()
    except UnpricedUsage as error:
        assert str(error)
        return
    assert reading.usage is None or all(count >= 0 for count in reading.usage.tokens.values())
    try:
        priced = price_usage(dialect, payload, CARD)
    except UnpricedUsage:
        return
    assert Priced.model_validate_json(priced.model_dump_json()) == priced


def test_an_empty_usage_object_is_no_zero_bill() -> None:
    for dialect in READERS:
        for name in ("usage", "usageMetadata"):
            with pytest.raises(UnpricedUsage, match="not zero"):
                price_usage(dialect, {name: {}}, CARD)


@pytest.mark.parametrize("dialect", sorted(READERS))
@given(
    frames=st.lists(
        st.tuples(st.sampled_from(["", "message_start", "message_delta", "message_stop"]), JSON), max_size=4
    )
)
@example(frames=[("", {"type": []})])
def test_a_stream_is_read_or_refused(dialect: str, frames: list[tuple[str, Any]]) -> None:
    reader = READERS[dialect]()
    try:
        for name, data in frames:
            reader.event(name, json.dumps(data).encode())
        reading = reader.reading()
    except (UnpricedUsage, ValueError) as error:
        assert str(error)
        return
    assert reading.usage is None or all(count >= 0 for count in reading.usage.tokens.values())


COUNT = st.integers(0, 10**6)


@given(read=COUNT, five=COUNT, hour=COUNT, plain=COUNT, out=COUNT)
def test_anthropic_classes_sum_back_to_what_was_written_and_read(
    read: int, five: int, hour: int, plain: int, out: int
) -> None:
    usage = {
        "input_tokens": plain,
        "output_tokens": out,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": five + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
    }
    assert sum(_tokens("anthropic", {"usage": usage}).values()) == plain + out + read + five + hour


@given(parts=st.lists(COUNT, min_size=4, max_size=4), out=COUNT, reasoning=st.integers(0, 100))
def test_openai_classes_sum_back_to_the_total(parts: list[int], out: int, reasoning: int) -> None:
    plain, read, short, long = parts
    total = plain + read + short + long
    details = {
        "cached_tokens": read,
        "cache_write_tokens": short + long,
        "cache_write_tokens_details": {"ttl_30m_tokens": short, "ttl_12h_tokens": long},
    }
    usage = {
        "input_tokens": total,
        "input_tokens_details": details,
        "output_tokens": out + reasoning,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": total + out + reasoning,
    }
    assert sum(_tokens("openai_responses", {"usage": usage}).values()) == usage["total_tokens"]


@given(parts=st.lists(COUNT, min_size=8, max_size=8))
def test_gemini_classes_sum_back_to_the_total(parts: list[int]) -> None:
    text, audio, image, cached_text, cached_image, thoughts, tools, said = parts
    prompt = text + audio + image + cached_text + cached_image
    total = prompt + said + thoughts + tools
    usage = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": cached_text + cached_image,
        "candidatesTokenCount": said,
        "thoughtsTokenCount": thoughts,
        "toolUsePromptTokenCount": tools,
        "totalTokenCount": total,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": text + cached_text},
            {"modality": "AUDIO", "tokenCount": audio},
            {"modality": "IMAGE", "tokenCount": image + cached_image},
        ],
        "cacheTokensDetails": [
            {"modality": "TEXT", "tokenCount": cached_text},
            {"modality": "IMAGE", "tokenCount": cached_image},
        ],
    }
    tokens = _tokens("gemini", {"usageMetadata": usage})
    assert sum(tokens.values()) == total and tokens.get("in_audio", 0) == audio


def _tokens(dialect: str, payload: dict[str, Any]) -> dict[TokenClass, int]:
    reader = READERS[dialect]()
    reader.body(payload)
    usage = reader.reading().usage
    assert usage is not None
    return usage.tokens
