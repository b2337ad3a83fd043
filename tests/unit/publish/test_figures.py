"""Figures place exact numbers, and never leave their frame."""

from __future__ import annotations

from fractions import Fraction

import pytest

from controller.domain.exact import UNBOUNDED
from controller.publish.figures import Point, around_zero, cost_against_success, from_zero, interval_row, tick_step


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


def test_bounds_outside_the_scale_end_in_an_arrow() -> None:
    scale = around_zero(Fraction(1, 10))
    inside = interval_row(scale, Fraction(-1, 20), Fraction(0), Fraction(1, 20), strong=True, baseline=None)
    outside = interval_row(scale, -UNBOUNDED, Fraction(0), UNBOUNDED, strong=False, baseline=Fraction(0))
    assert "path" not in inside and outside.count("<path") == 2
    assert 'x1="0%"' in outside and 'x2="100%"' in outside


def test_an_unknown_interval_draws_only_the_point() -> None:
    row = interval_row(around_zero(Fraction(1)), None, Fraction(1, 2), None, strong=False, baseline=None)
    assert "span" not in row and "circle" in row


def test_arms_without_a_known_cost_have_no_place_in_the_scatter() -> None:
    unknown = Point("A", None, None, None, Fraction(1, 2), None, None)
    endless = Point("B", UNBOUNDED, UNBOUNDED, UNBOUNDED, Fraction(0), Fraction(0), Fraction(0))
    assert cost_against_success([unknown], "none") is None
    drawn = cost_against_success([unknown, endless], 'B & "C"')
    assert drawn is not None
    assert ">B</text>" in drawn and ">A</text>" not in drawn
    assert "B &amp; &quot;C&quot;" in drawn
