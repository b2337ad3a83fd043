"""Does the method keep its promises on data whose truth is known? Fixed seeds, so the answer is always the same."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from controller.analyse.draws import Resampler
from controller.analyse.enumerate import sum_distribution
from controller.analyse.holm import holm_intervals, interval
from controller.analyse.replicates import WholeReplicates


def successes(chance: Random, chances: list[float]) -> list[int]:
    return [sum(chance.random() < p for _ in range(3)) for p in chances]


@pytest.mark.slow
def test_a_single_interval_covers_nearly_as_often_as_it_says() -> None:
    """50 tasks, success .64 against .59: simulations elsewhere gave .928 with a standard error of .005."""
    chance, resampler, covered, studies = Random(1), Resampler.of("1" * 64, 50, 999), 0, 800
    for _ in range(studies):
        ease = [chance.betavariate(1.6, 0.9) for _ in range(50)]
        first = successes(chance, ease)
        second = successes(chance, [max(0.0, p - 0.05) for p in ease])
        sums = resampler.drawn @ np.array([a - b for a, b in zip(first, second, strict=True)], dtype=np.int64)
        _, low, high = interval(WholeReplicates(sums, Fraction(1, 150)))
        truth = sum(p - max(0.0, p - 0.05) for p in ease) / 50
        covered += float(low) <= truth <= float(high)
    assert 0.91 <= covered / studies <= 0.99


@pytest.mark.slow
def test_equal_arms_are_rarely_told_apart() -> None:
    """Six equal arms, 15 pairs, 100 tasks: a false claim in at most about 5 % of rounds."""
    chance, resampler, false_claims, studies = Random(2), Resampler.of("2" * 64, 100, 4_999), 0, 300
    for _ in range(studies):
        ease = [chance.betavariate(2, 2) for _ in range(100)]
        arms = np.array([successes(chance, ease) for _ in range(6)], dtype=np.int64)
        family = [
            WholeReplicates(resampler.drawn @ (arms[first] - arms[second]), Fraction(1, 300))
            for first in range(6)
            for second in range(first + 1, 6)
        ]
        false_claims += any(one.rejected for one in holm_intervals(family, resamples=4_999, null=Fraction(0)))
    assert false_claims / studies <= 0.08


def test_the_draws_follow_the_exact_distribution() -> None:
    """10,000 draws against all 8**8 resamples: no tail is off by more than four standard errors."""
    differences = [3, 2, 0, -1, 1, 0, -2, 1]
    resampler = Resampler.of("3" * 64, 8, 10_000)
    sums = resampler.drawn @ np.array(differences, dtype=np.int64)
    ways, seen = sum_distribution(differences), 0
    for value in sorted(ways):
        seen += ways[value]
        expected = seen / 8**8
        observed = np.count_nonzero(sums <= value) / 10_000
        assert abs(observed - expected) <= 4 * (expected * (1 - expected) / 10_000) ** 0.5 + 1e-9
