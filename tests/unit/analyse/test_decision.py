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


def test_each_rule_says_with_which_numbers_it_was_decided() -> None:
    cost_tied = replace(TIED, cost_first=both(Fraction(901, 100)))
    faster = replace(cost_tied, time_second=both(80), time_ratio=Bounds(Fraction(11, 10), Fraction(13, 10)))
    success, cost, time = decide(faster).findings
    assert (success.status, cost.status, time.status) == ("tie", "tie", "met")
    assert [(one.value, one.relation, one.bound, one.met) for one in success.conditions] == [("-1/50", ">", "0", False)]
    assert [(one.value, one.relation, one.bound, one.met) for one in cost.conditions] == [
        ("-1/50", ">", "-3/100", True),
        ("901/100", "<=", "9", False),
        ("99/100", "<", "1", True),
    ]
    assert time.arm == "b"
    assert [(one.value, one.bound, one.met) for one in time.conditions] == [
        ("-1/50", "-3/100", True),
        ("80", "90", True),
        ("10/11", "1", True),
    ]
    assert time.sentence == (
        "time: at least 10 % lower, and its interval lies entirely below 1 "
        "(b: success lower bound −2.0 points; 20.0 % lower; ratio interval 0.769 to 0.909)"
    )


def test_rules_after_the_deciding_one_are_not_asked() -> None:
    won = decide(replace(TIED, success=Bounds(Fraction(1, 100), Fraction(1, 2)), success_difference=Fraction(1, 4)))
    assert [finding.status for finding in won.findings] == ["met", "not reached", "not reached"]
    assert won.reasons == ("success: the interval excludes zero (+1.0 to +50.0 points)",)


def test_a_saving_that_only_the_success_bound_forbids_is_no_tie() -> None:
    """The dearer arm must not win by its time: cost does not tie, so the rules stop."""
    behind = replace(
        TIED,
        success=Bounds(Fraction(-4, 100), Fraction(1, 100)),
        time_second=both(50),
        time_ratio=Bounds(Fraction(15, 10), Fraction(2)),
    )
    decision = decide(behind)
    assert [finding.status for finding in decision.findings] == ["tie", "no tie", "not reached"]
    assert decision.conclusion == "no reliable difference"
    assert "not above -3 points, so the rules stop here" in decision.reasons[-1]


def test_a_rounded_number_never_hides_which_side_of_the_bound_it_is_on() -> None:
    close = replace(TIED, success=Bounds(Fraction(1, 10**6), Fraction(1, 2)), success_difference=Fraction(1, 4))
    assert "interval +0.0001 to +50.0" in sentence(decide(close), close)
    below = replace(TIED, cost_ratio=Bounds(Fraction(8, 10), Fraction(99_999, 100_000)))
    assert "ratio 0.800 to 0.99999)" in sentence(decide(below), below)


def test_a_finite_cost_against_an_endless_one_is_said_so() -> None:
    endless = replace(TIED, cost_second=Bounds(UNBOUNDED, UNBOUNDED), cost_ratio=Bounds(Fraction(0), Fraction(0)))
    assert "its cost per success was finite and the other's without bound" in sentence(decide(endless), endless)
    assert decide(endless).findings[1].conditions[1].bound == "unbounded"
