"""The replicates of one statistic, with exact order statistics and exact counts around the null value.

A replicate that is undefined (infinity minus infinity, 0/0) or only bounded (a censored time) counts against both
directions: its `low` is the smallest value it may have and its `high` the largest. Floats serve to sort only. Their
error is bounded, and whatever lies within the bound of the wanted value is compared again as rationals, so no result
depends on rounding.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from controller.domain.exact import UNBOUNDED, Exact

Floats = NDArray[np.float64]
# Each approximation below is a handful of float operations on exact integers: relative error under 2**-49.
_TOLERANCE: Final = 2.0**-44


class Ordered(Protocol):
    """What an interval needs of a statistic. Ranks count from 1, in ascending order."""

    @property
    def resamples(self) -> int:
        """How many replicates there are."""

    def low_at(self, rank: int) -> Exact:
        """The value of that rank when every doubtful replicate takes its smallest value."""

    def high_at(self, rank: int) -> Exact:
        """The value of that rank when every doubtful replicate takes its largest value."""


class Replicates(Ordered, Protocol):
    """What a test of a null value needs beside that."""

    @property
    def infinite(self) -> int:
        """How many replicates are infinite for certain."""

    @property
    def undefined(self) -> int:
        """How many replicates count against both directions."""

    def at_most(self, null: Fraction) -> int:
        """How many replicates are, or may be, at or below the null value."""

    def at_least(self, null: Fraction) -> int:
        """How many replicates are, or may be, at or above the null value."""


class WholeReplicates:
    """Replicates that are whole multiples of one rational unit, such as differences of success counts."""

    infinite = 0
    undefined = 0

    def __init__(self, multiples: NDArray[np.int64], unit: Fraction) -> None:
        self.resamples = int(multiples.size)
        self._unit = unit
        self._first = int(multiples.min())
        self._cumulated = np.cumsum(np.bincount(multiples - self._first))

    def low_at(self, rank: int) -> Exact:
        return (self._first + int(np.searchsorted(self._cumulated, rank))) * self._unit

    high_at = low_at

    def at_most(self, null: Fraction) -> int:
        limit = null / self._unit
        index = limit.numerator // limit.denominator - self._first
        return int(self._cumulated[min(index, len(self._cumulated) - 1)]) if index >= 0 else 0

    def at_least(self, null: Fraction) -> int:
        limit = null / self._unit
        below = -(-limit.numerator // limit.denominator) - 1 - self._first
        return self.resamples - (int(self._cumulated[min(below, len(self._cumulated) - 1)]) if below >= 0 else 0)


class RatioReplicates:
    """Replicates that are ratios. `parts` are integer arrays; `fraction` makes the exact value of one row of them.

    `low` and `high` hold the approximate values; they differ only where a replicate is doubtful, and there they are 0
    and infinity, which need no exact value.
    """

    def __init__(
        self,
        low: Floats,
        high: Floats,
        parts: Sequence[NDArray[np.int64]],
        fraction: Callable[..., Fraction],
    ) -> None:
        self.resamples = int(low.size)
        self._low, self._high = low, high
        doubtful = low != high
        self.undefined = int(np.count_nonzero(doubtful))
        self.infinite = int(np.count_nonzero(np.isinf(low)))
        self._sorted_low = np.sort(low)
        self._sorted_high = np.sort(high) if self.undefined else self._sorted_low
        self._parts = tuple(parts)
        self._fraction = fraction

    def low_at(self, rank: int) -> Exact:
        return self._at(self._low, self._sorted_low, rank)

    def high_at(self, rank: int) -> Exact:
        return self._at(self._high, self._sorted_high, rank)

    def at_most(self, null: Fraction) -> int:
        below, near = self._around(self._low, null)
        return below + sum(value <= null for value in near)

    def at_least(self, null: Fraction) -> int:
        below, near = self._around(self._high, null)
        return self.resamples - below - sum(value < null for value in near)

    def _at(self, approximate: Floats, ordered: Floats, rank: int) -> Exact:
        wanted = float(ordered[rank - 1])
        if np.isinf(wanted):
            return UNBOUNDED
        if wanted == 0:
            return Fraction(0)  # a quotient of positive integers never rounds to zero
        first = int(np.searchsorted(ordered, wanted * (1 - _TOLERANCE), side="left"))
        last = int(np.searchsorted(ordered, wanted * (1 + _TOLERANCE), side="right"))
        if last - first == 1:
            index = int(np.flatnonzero(approximate == wanted)[0])
            return self._exact(np.array([index]))[0]
        near = np.flatnonzero(np.abs(approximate - wanted) <= wanted * _TOLERANCE * 2)
        start = int(np.count_nonzero(approximate < wanted)) - int(np.count_nonzero(approximate[near] < wanted))
        tied = Counter(self._rows(near))
        values = sorted((self._fraction(*row), count) for row, count in tied.items())
        reached = itertools.accumulate((count for _, count in values), initial=start)
        return next(
            value for (value, _), last in zip(values, itertools.islice(reached, 1, None), strict=True) if rank <= last
        )

    def _around(self, approximate: Floats, null: Fraction) -> tuple[int, list[Fraction]]:
        """How many lie surely below the null value, and the exact values of those too near to say."""
        centre = float(null)
        margin = abs(centre) * _TOLERANCE
        near = np.flatnonzero(np.abs(approximate - centre) <= margin)
        return int(np.count_nonzero(approximate < centre - margin)), self._exact(near)

    def _exact(self, indices: NDArray[np.intp]) -> list[Fraction]:
        seen: dict[tuple[int, ...], Fraction] = {}
        values = []
        for row in self._rows(indices):
            if row not in seen:
                seen[row] = self._fraction(*row)
            values.append(seen[row])
        return values

    def _rows(self, indices: NDArray[np.intp]) -> Iterator[tuple[int, ...]]:
        return zip(*(part[indices].tolist() for part in self._parts), strict=True)
