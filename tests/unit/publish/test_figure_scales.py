"""Scales place exact numbers: in order, within the frame, and the same on any machine."""

from __future__ import annotations

from fractions import Fraction

import pytest

from controller.domain.exact import UNBOUNDED
from controller.publish.figure_scales import around_one, around_zero, even_apart, from_zero, in_decades, tick_step


@pytest.mark.parametrize(
    ("span", "count", "step"),
    [(10, 5, 2), (11, 5, 5), (Fraction(1, 2), 5, Fraction(1, 10)), (1, 5, Fraction(1, 5)), (7_000, 5, 2_000)],
)
def test_tick_steps_are_round(span: Fraction, count: int, step: Fraction) -> None:
    assert tick_step(Fraction(span), count) == step


@pytest.mark.parametrize("reach", [Fraction(0), Fraction(1, 50), Fraction(1, 3), Fraction(567, 1000), Fraction(1)])
def test_a_scale_around_zero_is_symmetric_and_holds_its_reach(reach: Fraction) -> None:
    scale = around_zero(reach)
    assert scale.low == -scale.high and scale.high >= max(reach, Fraction(1, 10))
    assert scale.ticks[len(scale.ticks) // 2] == 0 and len(scale.ticks) <= 9
    assert scale.at(Fraction(0)) == "50.00"


def test_a_scale_from_zero_holds_its_reach() -> None:
    assert from_zero(Fraction(42, 100)).high == Fraction(1, 2)
    assert from_zero(Fraction(0)).high == 1


@pytest.mark.parametrize(("reach", "edge"), [(1, 2), (Fraction(21, 10), 5), (99, 100), (10**9, 100)])
def test_a_scale_of_ratios_has_one_in_its_middle_and_ends_at_a_hundred(reach: Fraction, edge: int) -> None:
    scale = around_one(Fraction(reach))
    assert (scale.low, scale.high) == (Fraction(1, edge), Fraction(edge))
    assert scale.at(Fraction(1)) == "50.00"
    assert {scale.at(Fraction(0)), scale.at(Fraction(10**12))} == {"0.00", "100.00"}
    assert (scale.at(-UNBOUNDED), scale.at(UNBOUNDED)) == ("0", "100")
    assert scale.beyond(UNBOUNDED) and scale.beyond(Fraction(edge) + 1) and not scale.beyond(Fraction(1))


@pytest.mark.parametrize(
    "values",
    [
        [Fraction(60)],
        [Fraction(0)],
        [Fraction(0), Fraction(1, 3), Fraction(7)],
        [Fraction(1, 10**9), Fraction(10**9)],
        [Fraction(number) for number in range(1, 400)],
    ],
)
def test_decades_keep_the_order_of_values_and_hold_them_all(values: list[Fraction]) -> None:
    scale = in_decades(values)
    places = [scale.share(value) for value in sorted(values)]
    assert places == sorted(set(places)) and not any(scale.beyond(value) for value in values)
    assert list(scale.edges) == sorted(set(scale.edges))
    for value in values:
        assert scale.edges[scale.bin(value)] <= value < scale.edges[scale.bin(value) + 1]
    assert len(scale.ticks) > 1 and all(scale.low <= tick <= scale.high for tick in scale.ticks)


def test_a_zero_has_a_bin_that_no_positive_value_shares() -> None:
    scale = in_decades([Fraction(0), Fraction(1, 1000), Fraction(2)])
    assert scale.bin(Fraction(0)) == 0 < scale.bin(Fraction(1, 1000))


def test_labels_that_would_touch_are_left_out() -> None:
    places = [Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(1)]
    assert even_apart(places, Fraction(3, 20)) == [True, False, True, True]
