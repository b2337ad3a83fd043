"""Usage objects of each dialect, class by class, and what leaves them without a price."""

from __future__ import annotations

from typing import Any

import pytest

from controller.errors import UnpricedUsage
from controller.meter.dialects import Reading
from controller.meter.pricing import price_usage, read_payload
from tests.unit.meter.test_vectors import CARDS


def read(dialect: str, usage: dict[str, Any], **response: Any) -> Reading:
    key = "usageMetadata" if dialect == "gemini" else "usage"
    return read_payload(dialect, {key: usage, **response})


ANTHROPIC = {"input_tokens": 10, "output_tokens": 20}
CHAT = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
RESPONSES = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
GEMINI = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
BEDROCK = {"inputTokens": 10, "outputTokens": 20, "totalTokens": 30}
PLAIN = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock_converse": BEDROCK,
}
SPLIT_30M = {"cache_write_tokens": 50, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30}}

READ: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    (
        "anthropic",
        ANTHROPIC | {"cache_creation_input_tokens": 7, "output_tokens_details": {"thinking_tokens": 20}},
        {"in": 10, "w5m": 7, "out": 20},
    ),
    (
        "anthropic",
        ANTHROPIC | {"cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}},
        {"in": 10, "w5m": 3, "w1h": 4, "out": 20},
    ),
    (
        "anthropic",
        ANTHROPIC
        | {
            "iterations": [
                {"type": "message", "input_tokens": 4, "output_tokens": 15},
                {"type": "compaction", "input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 50},
                {"type": "message", "input_tokens": 6, "output_tokens": 5},
            ]
        },
        {"in": 910, "read": 50, "out": 60},
    ),
    (  # a declined attempt is listed and not billed; the counters above are the serving model's
        "anthropic",
        ANTHROPIC
        | {
            "iterations": [
                {"type": "message", "input_tokens": 535, "output_tokens": 1, "model": "declined"},
                {"type": "fallback_message", "input_tokens": 10, "output_tokens": 20, "model": "served"},
            ]
        },
        {"in": 10, "out": 20},
    ),
    (
        "openai_chat",
        CHAT | {"prompt_tokens_details": {"audio_tokens": 30, "text_tokens": 70}},
        {"in": 70, "in_audio": 30, "out": 20},
    ),
    (
        "openai_chat",
        CHAT | {"completion_tokens_details": {"audio_tokens": 5, "reasoning_tokens": 15}},
        {"in": 100, "out": 15, "out_audio": 5},
    ),
    (
        "openai_chat",
        CHAT | {"completion_tokens_details": {"rejected_prediction_tokens": 4}},
        {"in": 100, "out": 20},
    ),
    (
        "openai_responses",
        RESPONSES | {"input_tokens_details": {"cached_tokens": 40, **SPLIT_30M}},
        {"in": 10, "read": 40, "w30m": 20, "w12h": 30, "out": 20},
    ),
    (
        "gemini",
        {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 40,
            "candidatesTokenCount": 20,
            "thoughtsTokenCount": 7,
            "toolUsePromptTokenCount": 3,
            "totalTokenCount": 130,
        },
        {"in": 63, "read": 40, "out": 27},
    ),
    (
        "gemini",
        GEMINI
        | {
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 60},
                {"modality": "AUDIO", "tokenCount": 25},
                {"modality": "IMAGE", "tokenCount": 15},
            ],
            "candidatesTokensDetails": [
                {"modality": "AUDIO", "tokenCount": 12},
                {"modality": "IMAGE", "tokenCount": 3},
                {"tokenCount": 5},
            ],
        },
        {"in": 60, "in_audio": 25, "in_image": 15, "out": 5, "out_audio": 12, "out_image": 3},
    ),
    (
        "gemini",
        GEMINI
        | {
            "cachedContentTokenCount": 50,
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 40}, {"modality": "IMAGE", "tokenCount": 10}],
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 85}, {"modality": "IMAGE", "tokenCount": 15}],
        },
        {"in": 45, "read": 50, "in_image": 5, "out": 20},
    ),
    ("gemini", {"promptTokenCount": 5, "totalTokenCount": 5}, {"in": 5, "out": 0}),  # a blocked prompt
    (
        "bedrock_converse",
        {
            "inputTokens": 10,
            "outputTokens": 20,
            "cacheReadInputTokens": 5,
            "cacheWriteInputTokens": 9,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 2}, {"ttl": "5m", "inputTokens": 7}],
            "totalTokens": 44,
        },
        {"in": 10, "read": 5, "w5m": 7, "w1h": 2, "out": 20},
    ),
]


@pytest.mark.parametrize(("dialect", "usage", "classes"), READ)
def test_classes_are_disjoint(dialect: str, usage: dict[str, Any], classes: dict[str, int]) -> None:
    found = read(dialect, usage).usage
    assert found is not None and found.tokens == classes


IN = "prompt_tokens_details"
UNPRICED: list[tuple[str, dict[str, Any], str]] = [
    (
        "anthropic",
        ANTHROPIC
        | {
            "cache_creation_input_tokens": 10,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
        },
        "usage.cache_creation_input_tokens: 10 is not the sum of its parts, 7",
    ),
    (
        "anthropic",
        ANTHROPIC | {"cache_creation": {"ephemeral_24h_input_tokens": 3}},
        "usage.cache_creation.ephemeral_24",
    ),
    (
        "anthropic",
        ANTHROPIC | {"output_tokens_details": {"thinking_tokens": 21}},
        "usage.output_tokens_details.thinking",
    ),
    ("anthropic", ANTHROPIC | {"server_tool_use": {"code_runs": 1}}, "usage.server_tool_use.code_runs"),
    ("anthropic", ANTHROPIC | {"future_tokens": 1}, "usage.future_tokens: 1 is a counter this dialect does not know"),
    ("anthropic", ANTHROPIC | {"future_tokens": "17"}, "usage.future_tokens: '17' is a counter"),
    ("anthropic", ANTHROPIC | {"future_tokens": "1.5"}, "usage.future_tokens: '1.5' is a counter"),
    ("openai_chat", CHAT | {"future_tokens": "-7"}, "usage.future_tokens: '-7' is a counter"),
    ("openai_responses", RESPONSES | {"future_tokens": "+1E3"}, "usage.future_tokens: '+1E3' is a counter"),
    ("gemini", GEMINI | {"futureTokens": ".5"}, "usage.futureTokens: '.5' is a counter"),
    ("anthropic", ANTHROPIC | {"future": [{"tokens": 0}, {"tokens": 2}]}, "usage.future[1].tokens"),
    (
        "anthropic",
        ANTHROPIC | {"iterations": [{"type": "advisor_message", "input_tokens": 1, "output_tokens": 1, "model": "x"}]},
        "usage.iterations[0].type: 'advisor_message' is not priced",
    ),
    (
        "anthropic",
        ANTHROPIC | {"iterations": [{"type": "message", "input_tokens": 9, "output_tokens": 20}]},
        "usage.input_tokens: 10 is not the sum of its parts, 9",
    ),
    (
        "anthropic",
        ANTHROPIC | {"iterations": [{"type": "compaction", "input_tokens": 1, "output_tokens": 1, "images": 2}]},
        "usage.iterations[0].images",
    ),
    (
        "anthropic",
        ANTHROPIC | {"iterations": [{"type": "compaction", "input_tokens": 1}]},
        "usage.iterations[0].output",
    ),
    ("anthropic", {"input_tokens": 10}, "usage.output_tokens: missing"),
    ("anthropic", ANTHROPIC | {"input_tokens": None}, "usage.input_tokens: missing"),
    ("openai_chat", CHAT | {"total_tokens": 121}, "usage.total_tokens: 121 is not the sum of its parts, 120"),
    ("openai_chat", CHAT | {IN: {"cached_tokens": 60, "cache_write_tokens": 41}}, f"usage.{IN}: 101 exceeds the 100"),
    ("openai_chat", CHAT | {IN: {"cached_tokens": 1, "audio_tokens": 1}}, f"usage.{IN}: nothing says which"),
    ("openai_chat", CHAT | {IN: {"text_tokens": 101}}, f"usage.{IN}.text_tokens: 101 exceeds"),
    ("openai_chat", CHAT | {IN: {"video_tokens": 1}}, f"usage.{IN}.video_tokens: 1 is a counter"),
    (
        "openai_chat",
        CHAT | {"completion_tokens_details": {"reasoning_tokens": 21}},
        "details.reasoning_tokens: 21 exceeds",
    ),
    ("openai_chat", CHAT | {"cost": 0.01}, "usage.cost: 0.01 is a counter"),
    ("openai_chat", {"prompt_tokens": 1}, "usage.completion_tokens: missing"),
    (
        "openai_responses",
        RESPONSES | {"input_tokens_details": SPLIT_30M | {"cache_write_tokens": 51}},
        "usage.input_tokens_details.cache_write_tokens: 51 is not the sum of its parts, 50",
    ),
    ("gemini", GEMINI | {"totalTokenCount": 119}, "usage.totalTokenCount: 119 is not the sum of its parts, 120"),
    ("gemini", GEMINI | {"cachedContentTokenCount": 101}, "usage.cachedContentTokenCount: 101 exceeds"),
    ("gemini", {"promptTokenCount": 9, "toolUsePromptTokenCount": 1}, "usage.totalTokenCount: missing"),
    ("gemini", {"candidatesTokenCount": 1}, "usage.promptTokenCount: missing"),
    (
        "gemini",
        GEMINI | {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 99}]},
        "usage.promptTokenCount: 100 is not the sum of its parts, 99",
    ),
    (
        "gemini",
        GEMINI | {"promptTokensDetails": [{"modality": "VIDEO", "tokenCount": 100}]},
        "usage.promptTokensDetails: modality 'VIDEO' is not priced",
    ),
    (
        "gemini",
        GEMINI
        | {
            "cachedContentTokenCount": 5,
            "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 5}],
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 100}],
        },
        "usage.cacheTokensDetails: modality 'AUDIO'",
    ),
    (
        "gemini",
        GEMINI | {"cachedContentTokenCount": 5, "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 100}]},
        "usage.cacheTokensDetails: missing",
    ),
    (
        "gemini",
        GEMINI | {"cachedContentTokenCount": 50, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 100}]},
        "usage.cacheTokensDetails: missing",
    ),
    (
        "gemini",
        GEMINI
        | {
            "cachedContentTokenCount": 50,
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 50}],
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 100}],
        },
        "usage.promptTokensDetails: 150 exceeds the 100",
    ),
    ("gemini", GEMINI | {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100, "n": 1}]}, "Details[0].n"),
    ("bedrock_converse", BEDROCK | {"totalTokens": 29}, "usage.totalTokens: 29 is not the sum of its parts, 30"),
    (
        "bedrock_converse",
        BEDROCK | {"cacheWriteInputTokens": 9, "totalTokens": 39, "cacheDetails": [{"ttl": "5m", "inputTokens": 8}]},
        "usage.cacheWriteInputTokens: 9 is not the sum of its parts, 8",
    ),
    (
        "bedrock_converse",
        BEDROCK | {"cacheDetails": [{"ttl": "2h", "inputTokens": 0}]},
        "usage.cacheDetails[0].ttl: '2h'",
    ),
]


@pytest.mark.parametrize(("dialect", "usage", "reason"), UNPRICED, ids=lambda value: str(value)[:50])
def test_what_contradicts_itself_or_is_not_known_has_no_price(dialect: str, usage: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpricedUsage) as unpriced:
        read(dialect, usage)
    assert reason in str(unpriced.value)


@pytest.mark.parametrize("value", [-1, 1.5, 5.0, True, "5", [5], {"n": 5}, 10**13])
@pytest.mark.parametrize("dialect", PLAIN)
def test_a_counter_that_is_no_count_is_refused_by_its_path(dialect: str, value: object) -> None:
    for name in PLAIN[dialect]:
        with pytest.raises(UnpricedUsage, match=rf"usage\.{name}"):
            read(dialect, PLAIN[dialect] | {name: value})


@pytest.mark.parametrize("value", [-1, 1.5, True, "5"])
def test_so_is_a_counter_that_only_splits_another(value: object) -> None:
    for dialect, usage, path in (
        ("anthropic", ANTHROPIC | {"output_tokens_details": {"thinking_tokens": value}}, "thinking_tokens"),
        ("openai_chat", CHAT | {"completion_tokens_details": {"reasoning_tokens": value}}, "reasoning_tokens"),
        ("gemini", GEMINI | {"promptTokensDetails": [{"tokenCount": value}]}, r"promptTokensDetails\[0\]\.tokenCount"),
        ("bedrock_converse", BEDROCK | {"cacheDetails": [{"ttl": "5m", "inputTokens": value}]}, r"cacheDetails\[0\]"),
    ):
        with pytest.raises(UnpricedUsage, match=rf"usage\..*{path}.* is not a count"):
            read(dialect, usage)


@pytest.mark.parametrize(
    ("dialect", "usage", "response", "tier", "speed", "geo"),
    [
        ("anthropic", {}, {}, "standard", "standard", "global"),
        ("anthropic", {"service_tier": "batch", "speed": "fast", "inference_geo": "us"}, {}, "batch", "fast", "us"),
        ("anthropic", {"inference_geo": "not_available"}, {}, "standard", "standard", "global"),
        ("openai_chat", {}, {"service_tier": "default"}, "standard", "standard", "global"),
        ("openai_responses", {}, {"service_tier": "flex"}, "flex", "standard", "global"),
        ("gemini", {}, {}, "standard", "standard", "global"),
        ("gemini", {"trafficType": "ON_DEMAND_PRIORITY"}, {}, "priority", "standard", "global"),
        ("gemini", {"serviceTier": "FLEX"}, {}, "flex", "standard", "global"),
        ("gemini", {"trafficType": "ON_DEMAND"}, {"serviceTier": "unspecified"}, "standard", "standard", "global"),
        ("gemini", {"trafficType": "PROVISIONED_THROUGHPUT"}, {}, "PROVISIONED_THROUGHPUT", "standard", "global"),
        ("bedrock_converse", {}, {"serviceTier": {"type": "default"}}, "standard", "standard", "global"),
        (
            "bedrock_converse",
            {},
            {"serviceTier": {"type": "flex"}, "performanceConfig": {"latency": "optimized"}},
            "flex",
            "optimized",
            "global",
        ),
    ],
)
def test_the_row_is_chosen_by_what_was_served(
    dialect: str, usage: dict[str, Any], response: dict[str, Any], tier: str, speed: str, geo: str
) -> None:
    found = read(dialect, PLAIN[dialect] | usage, **response)
    assert (found.tier, found.speed, found.geo) == (tier, speed, geo)


@pytest.mark.parametrize(
    ("dialect", "usage", "response"),
    [
        ("anthropic", {"service_tier": 3}, {}),
        ("anthropic", {"speed": ["fast"]}, {}),
        ("anthropic", {"inference_geo": "u" * 65}, {}),
        ("openai_chat", {}, {"service_tier": {"a": 1}}),
        ("openai_responses", {}, {"service_tier": "a\nb"}),
        ("gemini", {"trafficType": "ON_DEMAND", "serviceTier": "flex"}, {}),
        ("bedrock_converse", {}, {"serviceTier": {"type": 1}}),
    ],
)
def test_a_condition_that_is_no_word_has_no_price(
    dialect: str, usage: dict[str, Any], response: dict[str, Any]
) -> None:
    with pytest.raises(UnpricedUsage):
        read(dialect, PLAIN[dialect] | usage, **response)


@pytest.mark.parametrize(
    ("ttl", "classes", "assumes"),
    [
        (None, {"in": 50, "w30m": 50, "out": 20}, True),
        ("30m", {"in": 50, "w30m": 50, "out": 20}, False),
        ("12h", {"in": 50, "w12h": 50, "out": 20}, False),
    ],
)
def test_openai_says_which_lifetime_it_gave(ttl: str | None, classes: dict[str, int], assumes: bool) -> None:
    usage = RESPONSES | {"input_tokens_details": {"cache_write_tokens": 50}}
    found = read("openai_responses", usage, prompt_cache_options={"mode": "implicit", "ttl": ttl})
    assert found.usage is not None and (found.usage.tokens, found.assumes_lifetime) == (classes, assumes)
    with pytest.raises(UnpricedUsage, match=r"prompt_cache_options\.ttl: '7d'"):
        read("openai_responses", usage, prompt_cache_options={"ttl": "7d"})


@pytest.mark.parametrize(
    ("dialect", "extra"),
    [
        ("anthropic", {"cache_creation_input_tokens": 5}),
        ("openai_chat", {IN: {"cache_write_tokens": 5}}),
        ("bedrock_converse", {"cacheWriteInputTokens": 5, "totalTokens": 35}),
    ],
)
def test_a_write_without_its_lifetime_is_marked_as_the_default(dialect: str, extra: dict[str, Any]) -> None:
    assert read(dialect, PLAIN[dialect] | extra).assumes_lifetime
    assert not read(dialect, PLAIN[dialect]).assumes_lifetime


SEARCHES = {"web_search": {"num_requests": 3}, "image_gen": {"input_tokens": 0, "output_tokens": 0}}


def test_calls_are_counted_or_the_answer_has_no_price() -> None:
    found = read("openai_responses", RESPONSES, tool_usage=SEARCHES, output=[{"type": "web_search_call"}])
    assert found.usage is not None and found.usage.units == {"web_search": 3}
    searched = read("anthropic", ANTHROPIC | {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 9}})
    assert searched.usage is not None and searched.usage.units == {"web_search": 2}


@pytest.mark.parametrize(
    ("dialect", "response", "reason"),
    [
        ("openai_responses", {"output": [{"type": "web_search_call"}]}, "tool_usage: missing"),
        ("openai_responses", {"output": [{"type": "file_search_call"}]}, "file_search_call is charged apart"),
        ("openai_responses", {"output": [{"type": "code_interpreter_call"}]}, "code_interpreter_call is charged apart"),
        ("openai_responses", {"tool_usage": {"image_gen": {"input_tokens": 1}}}, "tool_usage.image_gen.input_tokens"),
        (
            "openai_responses",
            {"tool_usage": {"web_search": {"num_requests": 1.5}}},
            "tool_usage.web_search.num_requests",
        ),
        ("openai_responses", {"tool_usage": [1]}, "tool_usage is not an object"),
        ("anthropic", {"container": {"id": "c"}}, "container: charged by its time"),
        ("gemini", {"candidates": [{"groundingMetadata": {"webSearchQueries": ["q"]}}]}, "groundingMetadata"),
    ],
)
def test_a_charge_that_no_field_counts_is_named(dialect: str, response: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpricedUsage, match=reason):
        read(dialect, PLAIN[dialect], **response)


def test_a_container_named_in_a_stream_is_noticed() -> None:
    events = [
        ["message_start", {"message": {"id": "m", "model": "x", "usage": ANTHROPIC}}],
        ["message_delta", {"delta": {"stop_reason": "end_turn", "container": {"id": "c"}}, "usage": ANTHROPIC}],
        ["message_stop", {}],
    ]
    with pytest.raises(UnpricedUsage, match="container"):
        read_payload("anthropic_sse", events)


def test_several_prompts_have_no_price_where_it_depends_on_the_length_of_each() -> None:
    compacted = [
        {"type": "compaction", "input_tokens": 90_000, "output_tokens": 0},
        {"type": "message", "input_tokens": 20_000, "output_tokens": 0},
    ]
    usage = {"input_tokens": 20_000, "output_tokens": 0, "iterations": compacted}
    with pytest.raises(UnpricedUsage, match="threshold"):  # card D reprices a prompt of more than 100,000 tokens
        price_usage("anthropic", {"usage": usage}, CARDS["D"])
    assert price_usage("anthropic", {"usage": usage}, CARDS["A"]).usd == "0.44"  # 110,000 at 4 dollars per million
    short = usage | {"iterations": [compacted[0] | {"input_tokens": 80_000}, compacted[1]]}
    assert price_usage("anthropic", {"usage": short}, CARDS["D"]).usd == "0.01"  # 100,000 at 0.1, not above


CONVERSE: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": "hi"}, "contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": BEDROCK, "metrics": {"latencyMs": 7}, "serviceTier": {"type": "default"}}},
]


def test_a_converse_stream_is_priced_by_its_metadata() -> None:
    assert (
        price_usage("bedrock_converse_sse", CONVERSE, CARDS["A"]).usd == "0.00044"
    )  # 10 at 4 and 20 at 20 per million
    named = [list(pair) for event in CONVERSE for pair in event.items()]
    assert price_usage("bedrock_converse_sse", named, CARDS["A"]).usd == "0.00044"
    whole = {"output": {"message": {}}, "stopReason": "end_turn", "usage": BEDROCK, "metrics": {"latencyMs": 7}}
    assert price_usage("bedrock_converse", whole, CARDS["A"]).usd == "0.00044"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (CONVERSE[:3], "no usage"),
        ([*CONVERSE, CONVERSE[3]], "twice"),
        ([*CONVERSE, {"modelStreamErrorException": {"message": "x"}}], "modelStreamErrorException"),
        ([["throttlingException", {"message": "x"}]], "throttlingException"),
    ],
)
def test_a_converse_stream_that_broke_has_no_price(events: list[Any], reason: str) -> None:
    with pytest.raises(UnpricedUsage, match=reason):
        price_usage("bedrock_converse_sse", events, CARDS["A"])


def test_vertex_records_are_read_with_the_dialect_of_their_model() -> None:
    raw_predict = {
        "id": "msg_vrtx_01",
        "type": "message",
        "model": "A",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}],
        "usage": ANTHROPIC | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }
    assert price_usage("anthropic", raw_predict, CARDS["A"]).usd == "0.00044"
    generated = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": GEMINI | {"trafficType": "ON_DEMAND"},
        "modelVersion": "C",
        "createTime": "2026-11-30T00:00:00Z",
        "responseId": "r",
    }
    assert price_usage("gemini", generated, CARDS["C"]).usd == "0.00044"  # 100 at 2 and 20 at 12 per million
    flex = generated | {"usageMetadata": GEMINI | {"trafficType": "ON_DEMAND_FLEX"}}
    with pytest.raises(UnpricedUsage, match="tier flex"):
        price_usage("gemini", flex, CARDS["C"])
