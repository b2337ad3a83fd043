"""Holm's step-down test over one family, and the intervals that exclude the null value exactly when it rejects."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import List, Optional, Sequence, Tuple

from .replicates import Replicates
from .shown import INFINITE, Exact

ALPHA = Fraction(1, 20)


@dataclass(frozen=True)
class Tested:
    """One comparison of a family. No bounds and no counts where it could not be tested."""

    p: Fraction
    adjusted: Fraction
    level: Fraction
    k: int
    low: Optional[Exact]
    high: Optional[Exact]
    rejected: bool
    at_most: Optional[int]
    at_least: Optional[int]


def tail(resamples: int, level: Fraction) -> int:
    """k = floor((B + 1) * level / 2): how many replicates lie beyond each end of an interval."""
    return (resamples + 1) * level.numerator // (2 * level.denominator)


def interval(found: Replicates, level: Fraction = ALPHA) -> Tuple[int, Exact, Exact]:
    """k, and the k-th replicate from below and from above; without ends when k is 0."""
    k = tail(found.count, level)
    if k == 0:
        return 0, -INFINITE, INFINITE
    return k, found.low_at(k), found.high_at(found.count + 1 - k)


def family(members: Sequence[Optional[Replicates]], resamples: int, null: int) -> List[Tested]:
    """The whole family; what can't be tested stays in it with p = 1."""
    size = len(members)
    counts = [None if one is None else (one.at_most(null), one.at_least(null)) for one in members]
    p = [
        Fraction(1) if pair is None else min(Fraction(1), Fraction(2 * (1 + min(pair)), resamples + 1))
        for pair in counts
    ]
    order = sorted(range(size), key=lambda index: p[index])
    rejections = 0
    while rejections < size and p[order[rejections]] * (size - rejections) <= ALPHA:
        rejections += 1
    adjusted: List[Fraction] = [Fraction(1)] * size
    running = Fraction(0)
    for rank, index in enumerate(order):
        running = max(running, min(Fraction(1), (size - rank) * p[index]))
        adjusted[index] = running
    found = []
    for index, one in enumerate(members):
        level = ALPHA / (size - min(rejections, sum(other < p[index] for other in p)))
        k, low, high = (tail(resamples, level), None, None) if one is None else interval(one, level)
        pair = counts[index]
        found.append(
            Tested(
                p=p[index],
                adjusted=adjusted[index],
                level=level,
                k=k,
                low=low,
                high=high,
                rejected=adjusted[index] <= ALPHA,
                at_most=None if pair is None else pair[0],
                at_least=None if pair is None else pair[1],
            )
        )
    return found
