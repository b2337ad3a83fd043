"""Every priced and behaviour vector, and the public reports recomputed."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from controller.domain.money import usd_from_text, usd_to_text
from controller.errors import InvalidInput, UnpricedUsage
from controller.meter import price_usage, run_case, run_cases
from controller.meter.cases import card_of_case
from controller.meter.pricing import read_payload

VECTORS = json.loads((Path(__file__).parents[2] / "assets" / "metering.json").read_text())
CARDS = {name: card_of_case(name, raw) for name, raw in VECTORS["cards"].items()}


def present(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("case", VECTORS["priced"], ids=lambda case: case["id"])
def test_priced_vectors(case: dict[str, Any]) -> None:
    answer = run_case(case, CARDS)
    assert answer["usd"] == case["usd"]
    assert answer["usd"] not in case["wrong"].values()
    assert present(answer["classes"]) == present(case["classes"])
    assert (answer["units"], answer["multiplier"]) == (case["units"], case["multiplier"])


def test_a_case_file_is_answered_in_its_order() -> None:
    assert [answer["id"] for answer in run_cases(VECTORS)] == [case["id"] for case in VECTORS["priced"]]


# The rest of the published table of faults: (id, dialect, card, payload, right cost).
MORE: list[tuple[str, str, str, Any, str]] = [
    (
        "V02",
        "openai_chat",
        "B",
        {
            "usage": {
                "prompt_tokens": 50_000,
                "prompt_tokens_details": {"cached_tokens": 48_000, "cache_write_tokens": 1_500},
                "completion_tokens": 400,
                "completion_tokens_details": {"reasoning_tokens": 350},
                "total_tokens": 50_400,
            }
        },
        "0.006775",
    ),
    (
        "V05",
        "anthropic_sse",
        "A",
        [
            ["message_start", {"message": {"usage": {"input_tokens": 2_679, "output_tokens": 3}}}],
            [
                "message_delta",
                {
                    "usage": {
                        "input_tokens": 10_682,
                        "output_tokens": 510,
                        "server_tool_use": {"web_search_requests": 1},
                    }
                },
            ],
            ["message_stop", {}],
        ],
        "0.062928",
    ),
    (
        "V07",
        "anthropic_sse",
        "A",
        [
            ["message_start", {"message": {"usage": {"input_tokens": 50, "output_tokens": 1}}}],
            ["message_delta", {"usage": {"input_tokens": 0, "output_tokens": 0}}],
            ["message_stop", {}],
        ],
        "0",
    ),
    ("V10", "openai_chat", "B", {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, "0"),
    (
        "V11",
        "openai_chat_sse",
        "B",
        [
            {"choices": [{}], "usage": None},
            {"choices": [{}], "usage": None},
            {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12}},
            "[DONE]",
        ],
        "0.00009",
    ),
    (
        "V12",
        "openai_chat_sse",
        "B",
        [
            *({"choices": [{}], "usage": {"prompt_tokens": 0, "completion_tokens": n}} for n in (1, 4, 9, 16, 99)),
            "[DONE]",
        ],
        "0.000495",
    ),
    (
        "V14",
        "gemini",
        "C",
        {
            "usageMetadata": {
                "promptTokenCount": 100_000,
                "cachedContentTokenCount": 90_000,
                "candidatesTokenCount": 500,
                "thoughtsTokenCount": 1_500,
                "toolUsePromptTokenCount": 200,
                "totalTokenCount": 102_200,
            }
        },
        "0.0624",
    ),
    (
        "V17",
        "anthropic",
        "D",
        {
            "usage": {
                "input_tokens": 1,
                "cache_creation_input_tokens": 500,
                "cache_read_input_tokens": 99_500,
                "output_tokens": 200,
            }
        },
        "0.005788",
    ),
    (
        "V36",
        "openai_responses",
        "B",
        {"usage": {"input_tokens": 500, "output_tokens": 1_000}, "tool_usage": {"web_search": {"num_requests": 2}}},
        "0.0255",
    ),
    (
        "US inference",
        "anthropic",
        "A",
        {"usage": {"input_tokens": 10_000, "output_tokens": 1_000, "inference_geo": "us"}},
        "0.066",
    ),
]


@pytest.mark.parametrize(("name", "dialect", "card", "payload", "usd"), MORE, ids=[case[0] for case in MORE])
def test_the_other_published_faults(name: str, dialect: str, card: str, payload: Any, usd: str) -> None:
    assert price_usage(dialect, payload, CARDS[card]).usd == usd, name


@pytest.mark.parametrize("report", VECTORS["public_reports_recomputed"], ids=lambda report: report["source"])
def test_public_reports_recompute(report: dict[str, str]) -> None:
    assert re.fullmatch(r"[0-9.*+()]+", report["arithmetic"])
    exact = re.sub(r"[0-9.]+", lambda number: f"Fraction('{number[0]}')", report["arithmetic"])
    assert usd_to_text(eval(exact, {"Fraction": Fraction}) / 1_000_000) == report["usd"]


def test_the_ceiling_is_added_exactly() -> None:
    assert sum([usd_from_text("0.025")] * 40) == usd_from_text("1.00")
    assert sum([0.025] * 40) > 1.0


def test_a_refusal_before_any_output_is_free_by_a_documented_rule() -> None:
    usage = {"input_tokens": 106, "output_tokens": 1}
    payload = {"stop_reason": "refusal", "content": [], "usage": usage}
    priced = price_usage("anthropic", payload, CARDS["A"])
    assert priced.usd == "0" and priced.zero_bill_rule is not None


UNPRICED: list[tuple[str, str, Any]] = [
    ("no usage at all", "openai_chat", {"choices": []}),
    ("unknown counter", "anthropic", {"usage": {"input_tokens": 1, "output_tokens": 1, "hologram_tokens": 3}}),
    ("unknown nested counter", "openai_chat", {"usage": {"prompt_tokens": 1, "prompt_tokens_details": {"x": 1}}}),
    ("negative", "anthropic", {"usage": {"input_tokens": -1, "output_tokens": 1}}),
    ("fraction", "anthropic", {"usage": {"input_tokens": 1.5, "output_tokens": 1}}),
    ("boolean", "openai_chat", {"usage": {"prompt_tokens": True, "completion_tokens": 1}}),
    (
        "split unlike total",
        "anthropic",
        {"usage": {"cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 4}}},
    ),
    ("total unlike parts", "openai_chat", {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 3}}),
    (
        "cached above input",
        "openai_responses",
        {"usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 2}}},
    ),
    ("gemini total", "gemini", {"usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 6}}),
    (
        "audio without a price",
        "openai_chat",
        {"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"audio_tokens": 9}}},
    ),
    ("tier without a row", "openai_chat", {"service_tier": "flex", "usage": {"prompt_tokens": 1}}),
    ("advisor", "anthropic", {"usage": {"iterations": [{"type": "advisor_message", "input_tokens": 1}]}}),
    ("fast mode without a row", "anthropic", {"usage": {"input_tokens": 1, "output_tokens": 1, "speed": "fast"}}),
]


@pytest.mark.parametrize(("why", "dialect", "payload"), UNPRICED, ids=[case[0] for case in UNPRICED])
def test_what_is_not_understood_has_no_price(why: str, dialect: str, payload: Any) -> None:
    with pytest.raises(UnpricedUsage):
        price_usage(dialect, payload, CARDS["A" if dialect == "anthropic" else "B"])


def test_a_served_model_off_the_card_is_named() -> None:
    card = CARDS["A"].model_copy(update={"rows": CARDS["A"].rows + CARDS["B"].rows})
    payload = {"model": "m-a-20260301", "usage": {"input_tokens": 1, "output_tokens": 1}}
    with pytest.raises(UnpricedUsage, match="m-a-20260301"):
        price_usage("anthropic", payload, card)


@pytest.mark.parametrize(
    ("dialect", "payload"), [("cobol", {}), ("openai_chat", []), ("openai_chat_sse", {}), ("anthropic_sse", ["x"])]
)
def test_a_payload_of_the_wrong_shape_is_refused(dialect: str, payload: Any) -> None:
    with pytest.raises(InvalidInput):
        read_payload(dialect, payload)


def test_a_bare_usage_object_is_enough() -> None:
    assert price_usage("anthropic", {"input_tokens": 10, "output_tokens": 1}, CARDS["A"]).usd == "0.00006"


def test_a_case_with_a_fault_says_so_without_stopping_the_file() -> None:
    assert "no card" in run_case({"id": "x", "card": "Z"}, CARDS)["error"]
    with pytest.raises(InvalidInput, match=r"cards\.X\.bands\[0\]\.per_mtok\.in: '0\.0000000001'"):
        card_of_case("X", {"bands": [{"over": None, "per_mtok": {"in": "0.0000000001"}}]})
