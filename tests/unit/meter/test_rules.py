"""The final state of a request, decided from what was witnessed."""

from __future__ import annotations

from typing import Any

import pytest

from controller.domain.usage import RequestState, ZeroBillProof
from controller.errors import UnpricedUsage
from controller.meter.dialects import READERS, Reader
from controller.meter.rules import Exchange, LaneTerms, ending, estimate_usd, raw_usage_text
from tests.world.processes import CARD, MODEL

LANE = LaneTerms("rehearsal", MODEL, (MODEL,), "standard")
GOOD: dict[str, Any] = {"id": "m", "model": MODEL, "usage": {"input_tokens": 3_000, "output_tokens": 400}}
WHOLE = Exchange(connected=True, status=200, ended_well=True)


def read(payload: dict[str, Any]) -> Reader:
    reader = READERS["anthropic"]()
    reader.body(payload)
    return reader


def test_a_whole_answer_is_settled() -> None:
    end = ending(WHOLE, read(GOOD), LANE, CARD, free=False)
    assert (end.state, end.usd) == (RequestState.SETTLED, "0.02")


@pytest.mark.parametrize(
    ("exchange", "payload", "word"),
    [
        (Exchange(connected=True, fault="reset"), GOOD, "no answer"),
        (Exchange(connected=True, status=200, fault="broke off"), GOOD, "broke off"),
        (Exchange(connected=True, status=200), GOOD, "before its usage"),
        (WHOLE, {"model": MODEL}, "before its usage"),
        (WHOLE, GOOD | {"model": "other"}, "outside the lane"),
        (WHOLE, {"usage": GOOD["usage"]}, "outside the lane"),
        (WHOLE, GOOD | {"usage": GOOD["usage"] | {"service_tier": "priority"}}, "tier"),
        (WHOLE, GOOD | {"usage": GOOD["usage"] | {"inference_geo": "us"}}, "geo us"),
        (WHOLE, GOOD | {"usage": GOOD["usage"] | {"cache_read_input_tokens": 1}}, "no price for class"),
        (WHOLE, GOOD | {"usage": {"new_tokens": 1}}, "new_tokens"),
        (WHOLE, GOOD | {"usage": {"input_tokens": 1}}, "usage.output_tokens: missing"),
    ],
)
def test_anything_less_is_unknown(exchange: Exchange, payload: dict[str, Any], word: str) -> None:
    end = ending(exchange, read(payload), LANE, CARD, free=False)
    assert (end.state, end.usd) == (RequestState.UNKNOWN, None)
    assert word in end.note


def test_an_answer_that_could_not_be_read_is_unknown() -> None:
    exchange = Exchange(connected=True, status=200, ended_well=True, fault="gzip")
    assert ending(exchange, None, LANE, CARD, free=False).state is RequestState.UNKNOWN


@pytest.mark.parametrize(
    ("provider", "status", "state"),
    [
        ("rehearsal", 529, RequestState.ZERO_BILL),
        ("rehearsal", 400, RequestState.ZERO_BILL),
        ("gemini", 500, RequestState.ZERO_BILL),
        ("gemini", 503, RequestState.UNKNOWN),
        ("anthropic", 529, RequestState.UNKNOWN),
        ("openai", 429, RequestState.UNKNOWN),
        ("rehearsal", 302, RequestState.UNKNOWN),
    ],
)
def test_an_error_is_free_only_by_a_documented_rule(provider: str, status: int, state: RequestState) -> None:
    lane = LaneTerms(provider, MODEL, (MODEL,), "standard")
    end = ending(Exchange(connected=True, status=status, ended_well=True), None, lane, CARD, free=False)
    assert end.state is state
    assert end.proof == (ZeroBillProof.DOCUMENTED_RULE if state is RequestState.ZERO_BILL else None)


def test_no_connection_proves_that_nothing_was_sent() -> None:
    end = ending(Exchange(connected=False, fault="refused"), None, LANE, CARD, free=False)
    assert (end.state, end.proof, end.usd) == (RequestState.ZERO_BILL, ZeroBillProof.NEVER_SENT, "0")


def test_the_estimate_bounds_what_a_request_can_cost() -> None:
    bound = estimate_usd(LANE, CARD, body_bytes=9_000, output_tokens=400)
    assert bound == "0.02"
    assert estimate_usd(LANE, CARD, body_bytes=0, output_tokens=None) == "0.64"
    with pytest.raises(UnpricedUsage):
        estimate_usd(LaneTerms("rehearsal", "other", (), "standard"), CARD, body_bytes=1, output_tokens=1)


def test_raw_usage_is_kept_unless_it_is_absurd() -> None:
    assert raw_usage_text({"b": 1, "a": None}) == '{"a":null,"b":1}'
    assert raw_usage_text({}) == raw_usage_text({"a": "x" * 70_000}) == ""


def test_usage_that_is_not_understood_keeps_what_was_said() -> None:
    raw = GOOD["usage"] | {"new_tokens": 1}
    end = ending(WHOLE, read(GOOD | {"usage": raw}), LANE, CARD, free=False)
    assert end.state is RequestState.UNKNOWN and end.reading is not None
    assert (end.reading.raw, end.reading.message_id, end.reading.model) == (raw, "m", MODEL)
    assert end.usage is None and end.reading.usage is None


def test_the_default_lifetime_is_taken_only_when_no_other_was_asked_for() -> None:
    unsplit = GOOD | {"usage": GOOD["usage"] | {"cache_creation_input_tokens": 10}}
    assert "no price" in ending(WHOLE, read(unsplit), LANE, CARD, free=False).note  # the card prices no writes
    end = ending(WHOLE, read(unsplit), LANE, CARD, free=False, asks_lifetime=True)
    assert end.state is RequestState.UNKNOWN and "lifetime" in end.note
    split = {"cache_creation_input_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": 0}}
    told = GOOD | {"usage": GOOD["usage"] | split}
    assert ending(WHOLE, read(told), LANE, CARD, free=False, asks_lifetime=True).state is RequestState.SETTLED
