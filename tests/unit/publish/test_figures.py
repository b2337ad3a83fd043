"""Figures place exact numbers, and never leave their frame."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from controller.domain.exact import UNBOUNDED
from controller.publish.figure_scales import around_zero
from controller.publish.figures import Point, cost_against_success, interval_row


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


def test_an_interval_that_lies_beyond_one_edge_has_both_arrows_there() -> None:
    row = interval_row(around_zero(Fraction(1)), UNBOUNDED, UNBOUNDED, UNBOUNDED, strong=False, baseline=None)
    assert row.count('<svg x="100%"') == 2 and '<svg x="0%"' not in row


def test_letters_of_tied_arms_do_not_cover_one_another() -> None:
    tied = [Point(key, Fraction(1), None, None, Fraction(1, 2), None, None) for key in "ABCDEFGHIJKL"]
    drawn = cost_against_success(tied, "tied")
    assert drawn is not None
    tops = sorted(float(top) for top in re.findall(r'class="disc" cx="[\d.]+%" cy="([\d.]+)"', drawn))
    assert len(tops) == 12 and min(b - a for a, b in pairwise(tops)) >= 22
    assert tops[0] >= 11 and tops[-1] <= 369
    assert drawn.count('class="dot strong"') == 11
