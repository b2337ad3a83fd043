"""Card files: what is read, what is refused and where, and that a card has one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from controller.domain.json_files import parse_record
from controller.domain.rate_card import RateCard
from controller.domain.rating import RateKey, find_rate, price, price_ceiling
from controller.domain.usage import Usage
from controller.errors import InvalidInput, UnpricedUsage
from controller.evidence.canonical import canonical

SHIPPED = Path(__file__).parents[3] / "policies" / "rounds" / "rate-card-rehearsal.json"
SURCHARGE = {"geo": "us", "token_multiplier": "1.1", "source": "s", "retrieved_on": "2026-11-01"}


def draft() -> dict[str, Any]:
    """A card as a person writes it, with two bands and a surcharge."""
    return {
        "name": "draft",
        "rows": [
            {
                "provider": "p",
                "model": "m",
                "source": "https://example.org/prices",
                "retrieved_on": "2026-11-01",
                "bands": [
                    {"over": 0, "usd_per_million": {"in": "1", "read": "0.0375", "out": "5.50"}},
                    {"over": 200_000, "usd_per_million": {"in": "2", "read": "0.075", "out": "7.5"}},
                ],
                "usd_per_unit": {"web_search": "0.01"},
                "surcharges": [dict(SURCHARGE)],
            }
        ],
    }


def read(value: object) -> RateCard:
    return parse_record(json.dumps(value).encode(), RateCard, "card.json")


def test_dollars_outside_are_nano_dollars_inside() -> None:
    row = read(draft()).rows[0]
    assert row.bands[0].nano_usd_per_million == {"in": 10**9, "read": 37_500_000, "out": 5_500_000_000}
    assert row.nano_usd_per_unit == {"web_search": 10_000_000}


def test_every_spelling_of_a_card_has_one_digest() -> None:
    card = read(draft())
    assert b'"out":"5.5"' in canonical(card) and b'"effective_from":null' in canonical(card)
    assert parse_record(canonical(card), RateCard, "card.json") == card
    assert canonical(read(json.loads(canonical(card)))) == canonical(card)


def test_the_shipped_card_is_canonical_so_its_sha256_is_the_digest() -> None:
    data = SHIPPED.read_bytes()
    card = parse_record(data, RateCard, SHIPPED.name)
    assert hashlib.sha256(data).digest() == hashlib.sha256(canonical(card)).digest()


def row(card: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = card["rows"][0]
    return found


BAD: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("rows[0].bands[1].usd_per_million.read: 0.25 is a float", lambda c: price_of(c).update(read=0.25)),
    ("rows[0].bands[1].usd_per_million.read: a price is a decimal string", lambda c: price_of(c).update(read=2)),
    ("rows[0].bands[1].usd_per_million.read: '-1' is not", lambda c: price_of(c).update(read="-1")),
    ("rows[0].bands[1].usd_per_million.read: '1e3' is not", lambda c: price_of(c).update(read="1e3")),
    ("rows[0].bands[1].usd_per_million.read: 'NaN' is not", lambda c: price_of(c).update(read="NaN")),
    ("rows[0].bands[1].usd_per_million.read: '0.0000000001' is not", lambda c: price_of(c).update(read="0.0000000001")),
    ("rows[0].bands[1].usd_per_million.read: '99999999' is not", lambda c: price_of(c).update(read="9" * 8)),
    ("rows[0].bands[1].usd_per_million.read: '\\u0661' is not", lambda c: price_of(c).update(read="\u0661")),
    ("rows[0].bands[1].usd_per_million.input: Input should be", lambda c: price_of(c).update(input="1")),
    ("rows[0].bands[1].nano_usd_per_million: Extra", lambda c: row(c)["bands"][1].update(nano_usd_per_million={})),
    ("rows[0].bands: `over` must begin at 0 and rise", lambda c: row(c)["bands"].reverse()),
    ("rows[0].bands: `over` must begin at 0 and rise", lambda c: row(c)["bands"].clear()),
    ("rows[0].bands: `over` must begin at 0 and rise", lambda c: row(c)["bands"].append(row(c)["bands"][1])),
    ("rows[0].usd_per_unit.web_search: a price is", lambda c: row(c).update(usd_per_unit={"web_search": None})),
    ("rows[0].source: Field required", lambda c: row(c).pop("source")),
    ("rows[0].retrieved_on: ", lambda c: row(c).update(retrieved_on="2026-02-30")),
    (
        "rows[0]: effective_to lies before",
        lambda c: row(c).update(effective_from="2026-02-02", effective_to="2026-02-01"),
    ),
    ("rows[0].multiplier: Extra inputs", lambda c: row(c).update(multiplier="2")),
    ("rows[0].model: String should match", lambda c: row(c).update(model="m ")),
    ("rows: p / m / standard / standard / global is priced 2 times", lambda c: c["rows"].append(row(c))),
    (
        "rows: p / m / standard / standard / us is priced 2 times",
        lambda c: c["rows"].append(row(c) | {"geo": "us", "surcharges": []}),
    ),
    ("rows[0].surcharges[0].token_multiplier: a surcharge", lambda c: surcharge(c).update(token_multiplier="1")),
    ("rows[0].surcharges[0].token_multiplier: 1.1 is a float", lambda c: surcharge(c).update(token_multiplier=1.1)),
    ("rows[0].surcharges: each place has one", lambda c: row(c)["surcharges"].append(dict(SURCHARGE))),
    ("schema_version: Input should be", lambda c: c.update(schema_version="fairtrial.rate-card/9")),
    ("retrieved_on: Extra inputs", lambda c: c.update(retrieved_on="2026-11-01")),
]


def price_of(card: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = row(card)["bands"][1]["usd_per_million"]
    return found


def surcharge(card: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = row(card)["surcharges"][0]
    return found


@pytest.mark.parametrize(("fault", "change"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_card_is_refused_by_the_path_of_its_field(fault: str, change: Callable[[dict[str, Any]], object]) -> None:
    card = draft()
    change(card)
    with pytest.raises(InvalidInput) as caught:
        read(card)
    wanted = fault.encode().decode("unicode_escape") if "\\u" in fault else fault
    assert f"card.json: {wanted}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"name": "a", "rows": [], "name": "b"}', "card.json: name: the key is given twice"),
        ('{"rows": [{"bands": [{"over": NaN}]}]}', "card.json: rows[0].bands[0].over: NaN is not a number"),
        ('{"rows": [{"over": -Infinity}]}', "card.json: rows[0].over: -Infinity is not a number"),
        ('{"rows": [' + "9" * 5000 + "]}", "card.json: rows[0]: 99999999999999999999... has 5000 digits"),
        ('{"rows": ["\\ud800"]}', "card.json: rows[0]: half of a surrogate pair"),
        ('{"\\udfff": 1}', "card.json: (key): half of a surrogate pair"),
        ("[" * 100_000, "card.json: not readable as JSON"),
        ("[" * 70 + "]" * 70, "nested deeper than 64"),
        ("{", "card.json: not readable as JSON"),
        ("[]", "card.json: (whole file): Input should be an object"),
        ("\ufeff{}", "card.json: not readable as JSON"),
    ],
)
def test_a_file_with_two_meanings_or_none_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_record(text.encode(), RateCard, "card.json")
    assert fault in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"card\.json: not readable"):
        parse_record(b'{"name": "\xff"}', RateCard, "card.json")


def test_a_place_is_priced_by_its_own_row_or_by_a_declared_surcharge_and_else_not() -> None:
    card = read(draft())
    key = RateKey(provider="p", model="m")
    usage = Usage(tokens={"in": 1_000_000}, units={"web_search": 1})
    # 1,000,000 tokens exceed 200,000: 2 dollars, and a cent for the search, which no place makes dearer.
    assert price(usage, find_rate(card, key)) == Fraction("2.01")
    assert price(usage, find_rate(card, key.model_copy(update={"geo": "us"}))) == Fraction("2.21")
    with pytest.raises(UnpricedUsage, match="geo eu"):
        find_rate(card, key.model_copy(update={"geo": "eu"}))
    assert price_ceiling(card.rows[0], input_tokens=1_000_000, output_tokens=0) == Fraction("2.2")
