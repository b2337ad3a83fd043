"""The lint: a price pasted from another model is noticed, and only a named exception excuses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.domain.json_files import parse_record
from controller.domain.rate_card import RateCard
from controller.errors import InvalidInput
from controller.meter.card_lint import CardExceptions, lint

SHIPPED = Path(__file__).parents[3] / "policies" / "rounds" / "rate-card-exceptions.json"
NONE = CardExceptions(exceptions=())
# The public fault of research row 11: the 1-hour write of Haiku 3 was that of Sonnet.
HAIKU_3 = {"in": "0.25", "read": "0.025", "w5m": "0.3125", "w1h": "6", "out": "1.25"}


def card(provider: str, *bands: dict[str, str], **changes: Any) -> RateCard:
    overs = (0, 200_000)
    row = {
        "provider": provider,
        "model": "m",
        "source": "s",
        "retrieved_on": "2026-11-01",
        "bands": [{"over": over, "usd_per_million": prices} for over, prices in zip(overs, bands, strict=False)],
        **changes,
    }
    return parse_record(json.dumps({"name": "c", "rows": [row]}).encode(), RateCard, "c")


def findings(subject: RateCard, exceptions: CardExceptions = NONE) -> list[str]:
    return [str(finding) for finding in lint(subject, exceptions).findings]


def exceptions(**changes: Any) -> CardExceptions:
    item = {
        "rule": "read-ratio",
        "provider": "anthropic",
        "model": "m",
        "ratio": "0.05",
        "reason": "r",
        "source": "s",
        "retrieved_on": "2026-11-01",
        **changes,
    }
    return parse_record(json.dumps({"exceptions": [item]}).encode(), CardExceptions, "e.json")


def test_the_published_ratios_have_no_findings() -> None:
    assert findings(card("anthropic", HAIKU_3 | {"w1h": "0.5"})) == []
    assert findings(card("openai", {"in": "1", "read": "0.05", "w30m": "1.25", "w12h": "2.5", "out": "5"})) == []
    low, high = {"in": "1.25", "read": "0.125", "out": "10"}, {"in": "2.5", "read": "0.25", "out": "15"}
    assert findings(card("gemini", low, high)) == []


def test_a_price_pasted_from_another_model_is_found() -> None:
    assert findings(card("anthropic", HAIKU_3)) == [
        "rows[0].bands[0].usd_per_million.w1h: is 24 times `in`, expected 2 [w1h-ratio:anthropic/m]"
    ]


PLAIN = {"in": "1", "out": "5"}
SURCHARGE = {"geo": "us", "token_multiplier": "1.2", "source": "s", "retrieved_on": "2026-11-01"}


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        (card("anthropic", PLAIN | {"read": "0.05"}), "read: is 0.05 times `in`, expected 0.1 [read-ratio"),
        (card("anthropic", PLAIN | {"w5m": "2"}), "w5m: is 2 times `in`, expected 1.25 [w5m-ratio"),
        (card("openai", PLAIN | {"w30m": "1"}), "w30m: is 1 times `in`, expected 1.25 [w30m-ratio"),
        (card("openai", PLAIN | {"read": "1"}), "read: 1 is no cheaper than 1 [read-below-in"),
        (card("x", {"in": "5", "out": "1"}), "out: 1 is below the price of input, 5 [out-above-in"),
        (card("x", {"in": "1"}), "`in` and `out` both need a price above 0 [in-and-out"),
        (card("x", {"in": "0", "out": "1"}), "`in` and `out` both need a price above 0 [in-and-out"),
        (card("x", {"in": "1", "out": "2000.1"}), "out: 2000.1 per million tokens; per which unit? [plausible"),
        (card("x", PLAIN, {"in": "0.9", "out": "5"}), "in: 0.9 is below 1, the band below [band-rises"),
        (card("x", PLAIN, PLAIN | {"read": "0.1"}), "other classes than the band below: read [band-classes"),
        (card("openai", PLAIN, {"in": "2", "out": "10"}), "out: is 2 times the band below, expected 1.5 [band-ratio"),
        (
            card("openai", PLAIN, surcharges=[SURCHARGE]),
            "surcharges[0]: is 1.2 times the price elsewhere, expected 1.1",
        ),
        (card("x", PLAIN, effective_to="2026-10-31"), "is not in force on 2026-11-01, when it was retrieved [in-force"),
    ],
)
def test_each_rule_finds_its_fault(subject: RateCard, fault: str) -> None:
    found = findings(subject)
    assert len(found) == 1 and fault in found[0]


def test_a_batch_price_is_half_of_the_standard_one() -> None:
    row = card("anthropic", {"in": "1", "out": "5"}).rows[0]
    batch = card("anthropic", {"in": "0.5", "out": "5"}, tier="batch").rows[0]
    assert findings(RateCard(name="c", rows=(row, batch))) == [
        "rows[1].bands[0].usd_per_million.out: is 1 times the standard tier, expected 0.5 [batch-half:anthropic/m]"
    ]


def test_an_exception_covers_its_ratio_and_no_other() -> None:
    cheap, wrong = PLAIN | {"read": "0.05"}, PLAIN | {"read": "0.5"}
    assert findings(card("anthropic", cheap), exceptions()) == []
    assert len(findings(card("anthropic", wrong), exceptions())) == 1
    assert findings(card("anthropic", wrong), exceptions(ratio=None)) == []
    assert len(findings(card("anthropic", cheap), exceptions(model="other"))) == 1


def test_exceptions_are_reported_as_used_or_unused() -> None:
    report = lint(card("anthropic", PLAIN | {"read": "0.05"}), exceptions())
    assert (report.used, report.unused) == (("read-ratio:anthropic/m",), ())
    report = lint(card("anthropic", PLAIN), exceptions())
    assert (report.used, report.unused) == ((), ("read-ratio:anthropic/m",))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"rule": "made-up"}, "e.json: exceptions[0].rule: Input should be 'read-ratio'"),
        ({"ratio": 0.05}, "e.json: exceptions[0].ratio: 0.05 is a float"),
        ({"reason": ""}, "e.json: exceptions[0].reason: "),
        ({"models": []}, "e.json: exceptions[0].models: Extra inputs"),
    ],
)
def test_an_unknown_exception_is_refused_by_its_path(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        exceptions(**changes)
    assert fault in str(caught.value)


def test_the_shipped_exceptions_are_readable() -> None:
    known = parse_record(SHIPPED.read_bytes(), CardExceptions, SHIPPED.name)
    ratios = {item.model: item.ratio for item in known.exceptions if item.rule == "read-ratio"}
    assert ratios == {"claude-opus-5-5": "0.05", "claude-sonnet-5-5": "0.05", "claude-fable-5-1": "0.025"}
