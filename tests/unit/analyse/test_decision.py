"""The decision rules, one condition at a time, in exact numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from controller.domain.exact import UNBOUNDED
from controller.protocols.harness_round.decision import (
    Bounds,
    PairEvidence,
    Thresholds,
    above_margin,
    at_least_lower,
    decide,
    sentence,
)


def both(value: Fraction | int) -> Bounds:
    return Bounds(Fraction(value), Fraction(value))


TIED = PairEvidence(
    first="a",
    second="b",
    success_difference=Fraction(0),
    success=Bounds(Fraction(-2, 100), Fraction(2, 100)),
    cost_first=both(9),
    cost_second=both(10),
    cost_ratio=Bounds(Fraction(8, 10), Fraction(99, 100)),
    time_first=both(100),
    time_second=both(100),
    time_ratio=Bounds(Fraction(9, 10), Fraction(11, 10)),
)


def outcome(evidence: PairEvidence) -> tuple[str, str | None]:
    decision = decide(evidence)
    return decision.rule, decision.winner


def test_exactly_ten_percent_lower_is_enough() -> None:
    assert outcome(TIED) == ("cost", "a")
    assert outcome(replace(TIED, cost_first=both(Fraction(901, 100)))) == ("none", None)


def test_an_interval_that_touches_one_is_not_below_it() -> None:
    assert outcome(replace(TIED, cost_ratio=Bounds(Fraction(8, 10), Fraction(1)))) == ("none", None)


def test_a_success_bound_of_exactly_minus_three_points_is_not_above_it() -> None:
    assert outcome(replace(TIED, success=Bounds(Fraction(-3, 100), Fraction(1, 10)))) == ("none", None)
    assert above_margin(Fraction(-29, 1000), 3)


def test_success_comes_before_cost() -> None:
    assert outcome(replace(TIED, success=Bounds(Fraction(-1, 2), Fraction(-1, 100)))) == ("success", "b")


def test_an_interval_that_touches_zero_is_a_tie() -> None:
    assert outcome(replace(TIED, success=Bounds(Fraction(0), Fraction(1, 100)))) == ("cost", "a")


def test_the_second_arm_can_win_on_cost() -> None:
    mirrored = replace(
        TIED, cost_first=both(10), cost_second=both(9), cost_ratio=Bounds(Fraction(101, 100), Fraction(2))
    )
    assert outcome(mirrored) == ("cost", "b")


def test_time_decides_only_when_cost_ties() -> None:
    cost_tied = replace(TIED, cost_ratio=Bounds(Fraction(8, 10), Fraction(2)))
    faster = replace(cost_tied, time_second=both(80), time_ratio=Bounds(Fraction(11, 10), Fraction(13, 10)))
    assert outcome(faster) == ("time", "b")
    assert "p90 agent wall time was 20.0 % lower" in sentence(decide(faster), faster)


@pytest.mark.parametrize("field", ["success", "cost_ratio", "cost_first"])
def test_what_is_unknown_stops_the_rules(field: str) -> None:
    faster = replace(TIED, time_second=both(80), time_ratio=Bounds(Fraction(11, 10), Fraction(13, 10)))
    decision = decide(replace(faster, **{field: None}))  # type: ignore[arg-type]
    assert (decision.rule, decision.conclusion) == ("none", "no reliable difference")


def test_nothing_is_a_saving_on_a_free_or_an_endless_value() -> None:
    assert not at_least_lower(Fraction(0), Fraction(0), 10)
    assert not at_least_lower(UNBOUNDED, UNBOUNDED, 10)
    assert at_least_lower(Fraction(5), UNBOUNDED, 10)
    assert not at_least_lower(Fraction(9), Fraction(10), 11)


def test_the_thresholds_are_those_of_the_manifest() -> None:
    assert decide(TIED, Thresholds(saving_percent=20)).rule == "none"
    assert decide(TIED, Thresholds(margin_points=1)).rule == "none"


def test_a_quotable_sentence_names_the_winner_first() -> None:
    won = replace(TIED, success=Bounds(Fraction(-1, 2), Fraction(-1, 100)), success_difference=Fraction(-1, 4))
    text = sentence(decide(won), won, {"a": "Alpha", "b": "Beta"})
    assert text == (
        "Beta was more successful than Alpha: +25.0 percentage points (Holm-adjusted 95 % interval +1.0 to +50.0)."
    )
