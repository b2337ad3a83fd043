"""Resampled sums and quantiles of every arm under one index matrix, so that all comparisons are paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.analyse.quantile import Pooled, resampled_positions
from controller.analyse.replicates import Floats, RatioReplicates
from controller.analyse.resample import Int64s, label, matrix, matrix_digest, multiplicities
from controller.domain.exact import UNBOUNDED, Exact

FAMILY: Final = "harness-round"  # one matrix per round, for all arms and all metrics
_LIMB_BITS: Final = 40  # with at most 2**20 tasks, a resampled limb stays below 2**60


@dataclass(frozen=True, slots=True)
class Sums:
    """One exact integer per replicate, whole or in limbs of 40 bits (least first), and as floats for sorting."""

    limbs: tuple[Int64s, ...]
    approximate: Floats


@dataclass(frozen=True, slots=True)
class Resampler:
    """The drawn multiplicities: replicates x tasks as integers, and tasks x replicates as the same 32-bit floats."""

    stream: str
    digest: str
    drawn: Int64s
    by_task: NDArray[np.float32]

    @classmethod
    def of(cls, seed: str, tasks: int, resamples: int, *, family: str = FAMILY) -> Resampler:
        stream = label(seed, family, tasks)
        indices = matrix(stream, resamples, tasks)
        drawn = multiplicities(indices)
        by_task = np.ascontiguousarray(drawn.T, dtype=np.float32)
        return cls(stream, matrix_digest(indices), drawn, by_task)

    def sums(self, columns: Sequence[Sequence[int]]) -> list[Sums]:
        """The sum over the drawn tasks of each column, for every replicate.

        Counts, whose sums stay below 2**24, share one product of 32-bit floats, which is exact there and much faster;
        all other columns share one of 64-bit integers.
        """
        tasks = self.drawn.shape[1]
        split = [_limbs(column, tasks) for column in columns]
        counted = [limbs[0] for limbs in split if _is_count(limbs, tasks)]
        others = [limb for limbs in split if not _is_count(limbs, tasks) for limb in limbs]
        few = iter((np.array(counted, dtype=np.float32) @ self.by_task).astype(np.int64) if counted else ())
        many = iter(np.ascontiguousarray((self.drawn @ np.array(others, dtype=np.int64).T).T) if others else ())
        answers = []
        for limbs in split:
            parts = tuple(next(few if _is_count(limbs, tasks) else many) for _ in limbs)
            approximate = np.zeros(self.drawn.shape[0])
            for place, part in enumerate(parts):
                approximate += part.astype(np.float64) * 2.0 ** (_LIMB_BITS * place)
            answers.append(Sums(parts, approximate))
        return answers

    def positions(self, pooled: Pooled, quantiles: Sequence[Fraction]) -> list[Int64s]:
        """Where in the pooled values each replicate's quantiles fall."""
        return resampled_positions(pooled, self.by_task, quantiles)


def _is_count(limbs: Sequence[Sequence[int]], tasks: int) -> bool:
    return len(limbs) == 1 and max(limbs[0]) * tasks < 2**24


def _limbs(column: Sequence[int], tasks: int) -> list[list[int]]:
    """The column as it is when no resampled sum can leave 62 bits, else in limbs. Values are not negative."""
    largest = max(column)
    if largest * tasks < 2**62:
        return [list(column)]
    count = -(-largest.bit_length() // _LIMB_BITS)
    mask = (1 << _LIMB_BITS) - 1
    return [[value >> (_LIMB_BITS * place) & mask for value in column] for place in range(count)]


def _joined(limbs: Sequence[int]) -> int:
    return sum(limb << (_LIMB_BITS * place) for place, limb in enumerate(limbs))


def per_success(spent: Sums, unit: Fraction, successes: Int64s) -> RatioReplicates:
    """Spend per success. A replicate without a success is infinite whatever it spent, and is never dropped."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(successes == 0, np.inf, spent.approximate * float(unit) / successes)

    def exact(count: int, *limbs: int) -> Fraction:
        return Fraction(_joined(limbs), count) * unit

    return RatioReplicates(value, value, (successes, *spent.limbs), exact)


def share(part: Sums, whole: Sums) -> RatioReplicates:
    """Part over whole, where the part is never more. Of nothing, a share is undefined: it may be 0 and it may be 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = part.approximate / whole.approximate
    nothing = whole.approximate == 0
    limbs = len(part.limbs)

    def exact(*both: int) -> Fraction:
        total = _joined(both[limbs:])
        return Fraction(_joined(both[:limbs]), total) if total else Fraction(1)

    low, high = np.where(nothing, 0.0, value), np.where(nothing, 1.0, value)
    return RatioReplicates(low, high, (*part.limbs, *whole.limbs), exact)


def ratio_per_success(first: Sums, first_successes: Int64s, second: Sums, second_successes: Int64s) -> RatioReplicates:
    """(first / its successes) over (second / its successes), both sums in one unit.

    Infinity over infinity and 0/0 are undefined.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (first.approximate * second_successes) / (first_successes * second.approximate)
    first_infinite, second_infinite = first_successes == 0, second_successes == 0
    first_free = ~first_infinite & (first.approximate == 0)
    second_free = ~second_infinite & (second.approximate == 0)
    undefined = (first_infinite & second_infinite) | (first_free & second_free)
    low, high = _defined(value, undefined, first_infinite | second_free, second_infinite | first_free)
    first_limbs = len(first.limbs)

    def exact(ours: int, theirs: int, *limbs: int) -> Fraction:
        return Fraction(_joined(limbs[:first_limbs]) * theirs, ours * _joined(limbs[first_limbs:]))

    return RatioReplicates(low, high, (first_successes, second_successes, *first.limbs, *second.limbs), exact)


def _defined(
    value: Floats, undefined: NDArray[np.bool_], infinite: NDArray[np.bool_], zero: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Low and high with the conventions for infinities; an undefined replicate is 0 in one, infinite in the other."""
    settled = np.where(infinite, np.inf, np.where(zero, 0.0, value))
    return np.where(undefined, 0.0, settled), np.where(undefined, np.inf, settled)


@dataclass(frozen=True, slots=True)
class QuantileDraws:
    """Replicates of one nearest-rank quantile as positions in the pooled values; -1 where nothing was drawn.

    From `censored_from` on (a value, or None), a quantile is only a lower bound.
    """

    pooled: Pooled
    positions: Int64s
    unit: Fraction
    censored_from: int | None

    @property
    def resamples(self) -> int:
        return int(self.positions.size)

    @property
    def undefined(self) -> int:
        return int(np.count_nonzero(self.positions < 0))

    def low_at(self, rank: int) -> Exact:
        return self._value(self.positions, rank, nothing=Fraction(0))

    def high_at(self, rank: int) -> Exact:
        last = len(self.pooled.values)
        return self._value(np.where(self.positions < 0, last, self.positions), rank, nothing=UNBOUNDED)

    def drawn_values(self) -> tuple[Int64s, NDArray[np.bool_]]:
        """The value each replicate lands on (0 where it drew none), and whether it is only a lower bound."""
        values = np.array([*self.pooled.values, 0], dtype=np.int64)[self.positions]
        limit = self.censored_from
        doubtful = values >= limit if limit is not None else np.zeros(values.size, dtype=np.bool_)
        return values, doubtful | (self.positions < 0)

    def _value(self, positions: Int64s, rank: int, *, nothing: Exact) -> Exact:
        counts = np.cumsum(np.bincount(positions + 1, minlength=len(self.pooled.values) + 2))
        found = int(np.searchsorted(counts, rank)) - 1
        return self.pooled.values[found] * self.unit if 0 <= found < len(self.pooled.values) else nothing


def quantile_ratio(first: QuantileDraws, second: QuantileDraws) -> RatioReplicates:
    """First over second. A value that is only a lower bound may be anything up to infinity, and counts so."""
    (ours, our_doubt), (theirs, their_doubt) = first.drawn_values(), second.drawn_values()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ours.astype(np.float64) / theirs
    undefined = (ours == 0) & (theirs == 0)
    low, high = _defined(value, undefined, theirs == 0, ours == 0)
    low, high = np.where(their_doubt, 0.0, low), np.where(our_doubt, np.inf, high)
    return RatioReplicates(low, high, (ours, theirs), Fraction)
