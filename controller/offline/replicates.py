"""The replicates of one statistic in exact order, without a float and without comparing two rationals.

A replicate is a pair of integers (n, d) that means n/d, or infinity when d is 0. Where one may be anything between two
values (infinity over infinity, 0/0, a time that was cut short), `low` holds the least and `high` the largest of them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import List, Optional, Sequence, Tuple

from .shown import INFINITE, Exact

Pair = Tuple[int, int]
ZERO: Pair = (0, 1)
INFINITY: Pair = (1, 0)


class Replicates:
    """All replicates; `unit` is a factor on every one of them. Ranks count from 1 in ascending order."""

    def __init__(
        self, low: Sequence[Pair], high: Optional[Sequence[Pair]] = None, unit: Fraction = Fraction(1)
    ) -> None:
        self.low, self.high, self.unit = low, low if high is None else high, unit

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.low)

    @cached_property
    def infinite(self) -> int:
        """How many are infinite for certain."""
        return sum(d == 0 for _, d in self.low)

    @cached_property
    def doubtful(self) -> int:
        """How many have two different ends."""
        return sum(n * e != m * d or (d == 0) != (e == 0) for (n, d), (m, e) in zip(self.low, self.high))

    def low_at(self, rank: int) -> Exact:
        """The value of that rank when every doubtful replicate is at its least."""
        return self._at(self._ordered_low, rank)

    def high_at(self, rank: int) -> Exact:
        """The value of that rank when every doubtful replicate is at its largest."""
        return self._at(self._ordered_high, rank)

    def at_most(self, null: int) -> int:
        """How many are, or may be, at or below 0 or 1."""
        return sum(d != 0 and n <= null * d for n, d in self.low)

    def at_least(self, null: int) -> int:
        """How many are, or may be, at or above 0 or 1."""
        return sum(d == 0 or n >= null * d for n, d in self.high)

    @cached_property
    def _ordered_low(self) -> List[Pair]:
        return _in_order(self.low)

    @cached_property
    def _ordered_high(self) -> List[Pair]:
        return self._ordered_low if self.high is self.low else _in_order(self.high)

    def _at(self, finite: List[Pair], rank: int) -> Exact:
        if rank > len(finite):
            return INFINITE
        return Fraction(*finite[rank - 1]) * self.unit


def _in_order(pairs: Sequence[Pair]) -> List[Pair]:
    """The finite ones, ascending. Two different values lie at least 1/d² apart, so at this scale their whole parts
    differ too, and equal values have equal whole parts."""
    scale = max((d for _, d in pairs), default=1) ** 2
    return sorted((pair for pair in pairs if pair[1]), key=lambda pair: pair[0] * scale // pair[1])


def quotient(first: Pair, second: Pair) -> Tuple[Pair, Pair]:
    """first / second at their least and their largest; 0/0 and infinity over infinity may be anything."""
    (a, b), (c, d) = first, second
    if (b == 0 and d == 0) or (a == 0 and c == 0):
        return ZERO, INFINITY
    if b == 0 or c == 0:
        return INFINITY, INFINITY
    if d == 0 or a == 0:
        return ZERO, ZERO
    return (a * d, b * c), (a * d, b * c)
