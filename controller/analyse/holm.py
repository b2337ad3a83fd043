"""Holm's step-down test and the intervals that agree with it, in integers and rationals only.

p = 2(1+c)/(B+1), where c is the smaller count of replicates on either side of the null value (ties count on both).
The interval of a comparison is [x_(k), x_(B+1-k)] at its own level: alpha/(m-r+1) for a rejected one of rank r, the
level at which Holm's procedure stopped for all others. It excludes the null value exactly when the test at alpha
rejects. The intervals are not a joint band for the sizes of the differences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.analyse.replicates import Ordered, Replicates
from controller.domain.exact import UNBOUNDED, Exact

ALPHA: Final = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class StepDown:
    """Holm's answer for one p-value."""

    adjusted: Fraction
    rejected: bool
    level: Fraction  # of the interval that agrees with the test


@dataclass(frozen=True, slots=True)
class HolmInterval:
    """One comparison of a family. `low` and `high` are None when the comparison could not be tested."""

    p: Fraction
    adjusted: Fraction
    level: Fraction
    k: int
    low: Exact | None
    high: Exact | None
    rejected: bool
    at_most: int | None
    at_least: int | None


def step_down(p_values: Sequence[Fraction], alpha: Fraction = ALPHA) -> tuple[StepDown, ...]:
    """Adjusted p-values, rejections and interval levels, in the order given. Equal p-values share one level."""
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    rejections = 0
    while rejections < count and p_values[order[rejections]] * (count - rejections) <= alpha:
        rejections += 1
    ordered = [p_values[index] for index in order]
    adjusted: dict[int, Fraction] = {}
    running = Fraction(0)
    for rank, index in enumerate(order):
        running = max(running, min(Fraction(1), (count - rank) * p_values[index]))
        adjusted[index] = running
    answers = []
    for index, p_value in enumerate(p_values):
        smaller = bisect_left(ordered, p_value)  # strictly smaller ones, so ties share a level
        level = alpha / (count - min(smaller, rejections))
        answers.append(StepDown(adjusted=adjusted[index], rejected=adjusted[index] <= alpha, level=level))
    return tuple(answers)


def tail_rank(resamples: int, level: Fraction) -> int:
    """k: how many replicates each tail of an interval at that level holds, floor((B+1) * level / 2)."""
    return (resamples + 1) * level.numerator // (2 * level.denominator)


def p_value(resamples: int, at_most: int, at_least: int) -> Fraction:
    """The two-sided p-value; never zero, at most one."""
    return min(Fraction(1), Fraction(2 * (1 + min(at_most, at_least)), resamples + 1))


def interval(replicates: Ordered, level: Fraction = ALPHA) -> tuple[int, Exact, Exact]:
    """k and the bounds at one level; unbounded on both sides when the tail holds no replicate."""
    k = tail_rank(replicates.resamples, level)
    if k == 0:
        return 0, -UNBOUNDED, UNBOUNDED
    return k, replicates.low_at(k), replicates.high_at(replicates.resamples + 1 - k)


def holm_intervals(
    family: Sequence[Replicates | None], *, resamples: int, null: Fraction, alpha: Fraction = ALPHA
) -> tuple[HolmInterval, ...]:
    """The intervals of one family. A comparison that cannot be tested (None) stays in the family with p = 1."""
    counts = [None if one is None else (one.at_most(null), one.at_least(null)) for one in family]
    p_values = [Fraction(1) if pair is None else p_value(resamples, *pair) for pair in counts]
    intervals = []
    for one, pair, p, step in zip(family, counts, p_values, step_down(p_values, alpha), strict=True):
        k, low, high = (tail_rank(resamples, step.level), None, None) if one is None else interval(one, step.level)
        intervals.append(
            HolmInterval(
                p=p,
                adjusted=step.adjusted,
                level=step.level,
                k=k,
                low=low,
                high=high,
                rejected=step.rejected,
                at_most=None if pair is None else pair[0],
                at_least=None if pair is None else pair[1],
            )
        )
        excluded = low is not None and high is not None and (low > null or high < null)
        if excluded != step.rejected:
            raise AssertionError("Holm's test and its interval disagree")
    return tuple(intervals)
