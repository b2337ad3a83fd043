"""Usage times card: bands, missing prices, exactness."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.rating import Rate, RateKey, band_for, find_row, price, price_ceiling, prompt_tokens
from controller.domain.usage import Usage
from controller.errors import UnpricedUsage

ROW = RateRow(
    provider="p",
    model="m",
    source="s",
    retrieved_on="2026-01-01",
    bands=(
        RateBand(over=0, nano_usd_per_million={"in": 1_000, "read": 100, "w5m": 1_250, "out": 3_000}),
        RateBand(over=200, nano_usd_per_million={"in": 2_000, "out": 6_000}),
    ),
    nano_usd_per_unit={"web_search": 10},
)
CARD = RateCard(name="c", rows=(ROW,))


@pytest.mark.parametrize(("prompt", "over"), [(0, 0), (1, 0), (200, 0), (201, 200), (10**9, 200)])
def test_a_band_begins_strictly_above_its_threshold(prompt: int, over: int) -> None:
    assert band_for(ROW, prompt).over == over


def test_the_prompt_is_everything_the_model_reads() -> None:
    assert prompt_tokens(Usage(tokens={"in": 1, "read": 2, "w5m": 4, "w1h": 8, "in_image": 16, "out": 99})) == 31


def test_units_and_classes_add_up() -> None:
    usage = Usage(tokens={"in": 10, "read": 5, "out": 2}, units={"web_search": 3})
    assert price(usage, Rate(ROW)) == Fraction(10 * 1_000 + 5 * 100 + 2 * 3_000, 10**6) / 10**9 + Fraction(30, 10**9)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(tokens={"w1h": 1}),
        Usage(tokens={"in": 201, "read": 1}),  # the upper band names no price for cache reads
        Usage(tokens={"in": -1}),
        Usage(tokens={}, units={"grounding": 1}),
        Usage(tokens={}, units={"web_search": -1}),
    ],
)
def test_unknown_is_not_zero(usage: Usage) -> None:
    with pytest.raises(UnpricedUsage):
        price(usage, Rate(ROW))


def test_a_zero_count_needs_no_price() -> None:
    assert price(Usage(tokens={"w1h": 0, "in": 0}, units={"grounding": 0}), Rate(ROW)) == 0


def test_a_row_is_found_by_all_its_conditions() -> None:
    key = RateKey(provider="p", model="m")
    assert find_row(CARD, key) is ROW
    for change in ({"model": "n"}, {"tier": "priority"}, {"speed": "fast"}, {"geo": "us"}, {"provider": "q"}):
        with pytest.raises(UnpricedUsage, match="0 rows"):
            find_row(CARD, key.model_copy(update=change))
    with pytest.raises(UnpricedUsage, match="2 rows"):
        find_row(CARD.model_copy(update={"rows": (ROW, ROW)}), key)


@given(plain=st.integers(0, 400), written=st.integers(0, 100), out=st.integers(0, 400))
def test_the_ceiling_is_never_below_the_price(plain: int, written: int, out: int) -> None:
    row = ROW.model_copy(update={"bands": ROW.bands[:1]})
    usage = Usage(tokens={"in": plain, "w5m": written, "out": out})
    assert price(usage, Rate(row)) <= price_ceiling(row, input_tokens=plain + written, output_tokens=out)
