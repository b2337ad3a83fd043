"""No float reaches money: an amount is a whole number of nano-dollars, or a rational, or refused by its path."""

from __future__ import annotations

import ast
import copy
import decimal
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from controller.domain.json_files import parse_record
from controller.domain.money import EXACT, usd_from_text, usd_to_text
from controller.domain.rate_card import RateBand, RateCard, TokenClass
from controller.domain.rating import Rate, RateKey, find_rate, price
from controller.domain.record import field_path
from controller.domain.retail import RetailPolicy
from controller.domain.usage import Usage
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical

PROJECT = Path(__file__).parents[2]
CLASSES: tuple[TokenClass, ...] = get_args(TokenClass)
NANO = st.integers(0, 2_000 * 10**9)
COUNTS = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 10**12), max_size=5)


def dollars(nano: int) -> str:
    return f"{nano // 10**9}.{nano % 10**9:09d}"


def card_of(prices: dict[TokenClass, int], unit: int, multiplier: str) -> RateCard:
    """A card file with these prices, given in nano-dollars and written in dollars."""
    row = {
        "provider": "p",
        "model": "m",
        "source": "s",
        "retrieved_on": "2026-01-01",
        "bands": [{"over": 0, "usd_per_million": {name: dollars(nano) for name, nano in prices.items()}}],
        "usd_per_unit": {"web_search": dollars(unit)},
        "surcharges": [{"geo": "us", "token_multiplier": multiplier, "source": "s", "retrieved_on": "2026-01-01"}],
    }
    return parse_record(json.dumps({"name": "c", "rows": [row]}).encode(), RateCard, "card.json")


@given(prices=st.fixed_dictionaries(dict.fromkeys(CLASSES, NANO)), unit=NANO, tokens=COUNTS, calls=st.integers(0, 99))
def test_a_cost_is_the_integer_sum_and_its_text_gives_it_back(
    prices: dict[TokenClass, int], unit: int, tokens: dict[TokenClass, int], calls: int
) -> None:
    card = card_of(prices, unit, "1.1")
    usage = Usage(tokens=tokens, units={"web_search": calls})
    atto = sum(count * prices[name] for name, count in tokens.items())  # 10^-15 dollars
    for geo, tenths in (("global", 10), ("us", 11)):
        usd = price(usage, find_rate(card, RateKey(provider="p", model="m", geo=geo)))
        assert usd * 10**16 == atto * tenths + calls * unit * 10**7
        assert usd_from_text(usd_to_text(usd)) == usd


@given(prices=st.fixed_dictionaries(dict.fromkeys(CLASSES, NANO)), unit=NANO)
def test_a_card_survives_its_own_bytes(prices: dict[TokenClass, int], unit: int) -> None:
    card = card_of(prices, unit, "1.25")
    assert parse_record(canonical(card), RateCard, "card.json") == card


FILES: list[tuple[type[RateCard] | type[RetailPolicy], str]] = [
    (RateCard, "rate-card-rehearsal.json"),
    (RetailPolicy, "retail-cent-per-run.json"),
]


def places(value: Any, path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """The path of everything in a document that is no container."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, (*path, position))
    else:
        yield path


@pytest.mark.parametrize(("kind", "name"), FILES, ids=[name for _, name in FILES])
@given(number=st.floats(), data=st.data())
@example(number=2.0, data=None)
def test_a_float_anywhere_in_a_file_of_money_is_refused_by_its_path(
    kind: type[RateCard] | type[RetailPolicy], name: str, number: float, data: st.DataObject | None
) -> None:
    document = json.loads((PROJECT / "policies" / "rounds" / name).read_bytes())
    every = list(places(document))
    for path in every if data is None else [data.draw(st.sampled_from(every))]:
        changed = copy.deepcopy(document)
        inner = changed
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = number
        with pytest.raises(InvalidInput) as caught:
            parse_record(json.dumps(changed).encode(), kind, name)
        assert str(caught.value).startswith(f"{name}: {field_path(path)}: ")


@pytest.mark.parametrize("value", [1.0, True, "1", -1, 2**53, None, Fraction(1)])
def test_in_memory_a_price_is_a_whole_number_of_nano_dollars(value: Any) -> None:
    with pytest.raises(ValidationError):
        RateBand(over=0, nano_usd_per_million={"in": value})


@given(st.one_of(st.text(max_size=12), st.floats().map(str), st.decimals().map(str), st.integers().map(str)))
@example("1e999999999")
@example("0.5\n")
@example("\u0661")
@example("1_000")
@example(" 1")
@example("NaN")
def test_an_amount_is_a_plain_decimal_or_no_amount(text: str) -> None:
    try:
        amount = usd_from_text(text)
    except ValueError:
        return
    assert set(text) <= set("0123456789.")
    assert amount == Fraction(text) >= 0


def test_where_a_library_hands_over_decimals_nothing_is_rounded() -> None:
    with pytest.raises(decimal.Inexact):
        EXACT.divide(decimal.Decimal(1), decimal.Decimal(3))
    with pytest.raises(decimal.FloatOperation):
        EXACT.create_decimal(0.1)
    with pytest.raises(decimal.InvalidOperation):
        EXACT.create_decimal("one")
    with pytest.raises(decimal.Inexact):
        EXACT.create_decimal("0." + "3" * 60)


def test_forty_times_a_fortieth_is_the_whole_and_a_nano_more_is_above_it() -> None:
    part = usd_from_text("0.025")
    assert sum([part] * 40) == usd_from_text("1.00")
    assert sum([part] * 40) + Fraction(1, 10**30) > usd_from_text("1")


MONEY_MODULES = [
    "domain/money.py",
    "domain/price_map.py",
    "domain/rate_card.py",
    "domain/rating.py",
    "domain/retail.py",
    "domain/spend.py",
    "meter/card_build.py",
    "meter/card_lint.py",
    "meter/cases.py",
    "meter/pricing.py",
    "adapters/prices_genai.py",
    "adapters/prices_second_map.py",
]


@pytest.mark.parametrize("module", MONEY_MODULES)
def test_no_module_of_money_makes_a_float(module: str) -> None:
    tree = ast.parse((PROJECT / "controller" / module).read_text())
    literals = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is float]
    names = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "float"]
    assert (literals, names) == ([], [])


def test_a_rate_is_exact_whatever_it_multiplies() -> None:
    row = card_of(dict.fromkeys(CLASSES, 1), 1, "1.1").rows[0]
    assert price(Usage(tokens={"in": 1}), Rate(row, Fraction(11, 10))) == Fraction(11, 10**16)
