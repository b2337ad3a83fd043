"""The probabilities of a plan against the rules themselves, on simulated estimates. Fixed seeds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, log, sqrt
from random import Random

import pytest

from controller.analyse.normal import critical
from controller.analyse.power import Truth, chances
from controller.protocols.harness_round.decision import Bounds, PairEvidence, decide

STUDIES = 1_500
TASKS = 100


def exact(value: float) -> Fraction:
    """Near enough, and cheap to compute with."""
    return Fraction(round(value * 2**30), 2**30)


def simulated(truth: Truth, level: Fraction, chance: Random) -> PairEvidence:
    """Normal estimates with the intervals that they would have."""
    z = float(critical(level))

    def ratio(spread: float, saving: Fraction) -> tuple[Fraction, Bounds]:
        error = spread / sqrt(TASKS)
        seen = chance.gauss(log(1 - float(saving)), error)
        return exact(exp(seen)), Bounds(exact(exp(seen - z * error)), exact(exp(seen + z * error)))

    error = truth.spread / sqrt(TASKS)
    lead = chance.gauss(truth.lead, error)
    cost, cost_ratio = ratio(truth.cost_log_spread, truth.cost_saving)
    time, time_ratio = ratio(truth.time_log_spread or 1.0, truth.time_saving)
    one = Bounds(Fraction(1), Fraction(1))
    return PairEvidence(
        first="a",
        second="b",
        success_difference=exact(lead),
        success=Bounds(exact(lead - z * error), exact(lead + z * error)),
        cost_first=Bounds(cost, cost),
        cost_second=one,
        cost_ratio=cost_ratio,
        time_first=Bounds(time, time),
        time_second=one,
        time_ratio=time_ratio,
    )


@pytest.mark.parametrize(
    ("truth", "level"),
    [
        (Truth(0.17, 1.07, 0.5, 0.0, Fraction(3, 10), Fraction(0)), Fraction(1, 20)),
        (Truth(0.27, 0.8, 0.5, 0.02, Fraction(2, 10), Fraction(0)), Fraction(1, 120)),
        (Truth(0.17, 1.07, 0.5, 0.01, Fraction(0), Fraction(2, 10)), Fraction(1, 20)),
        (Truth(0.37, 0.6, 0.4, 0.05, Fraction(1, 10), Fraction(3, 10)), Fraction(1, 20)),
    ],
)
def test_the_rules_fire_as_often_as_planned(truth: Truth, level: Fraction) -> None:
    chance = Random(f"{truth}{level}")
    expected = chances(truth, TASKS, margin=0.03, saving=Fraction(1, 10), level=level)
    seen: Counter[tuple[str, str | None]] = Counter()
    for _ in range(STUDIES):
        decision = decide(simulated(truth, level, chance))
        seen[decision.rule, decision.winner] += 1
    assert expected.time is not None
    for count, probability in (
        (seen["success", "a"] + seen["success", "b"], expected.success),
        (seen["cost", "a"], expected.cost),
        (seen["time", "a"], expected.time),
    ):
        assert abs(count / STUDIES - probability) <= 4 * sqrt(probability * (1 - probability) / STUDIES) + 1 / STUDIES
