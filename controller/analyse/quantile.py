"""Quantiles by nearest rank, in integers: the value at rank ceil(q * n), counted from 1. Nothing is interpolated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.domain.exact import UNBOUNDED, Exact

Value = TypeVar("Value", int, Exact)


def nearest_rank(quantile: Fraction, count: int) -> int:
    """ceil(quantile * count), at least 1."""
    return max(1, -(-quantile.numerator * count // quantile.denominator))


def at_rank(values: Sequence[Value], quantile: Fraction) -> Value | None:
    """The nearest-rank quantile; None of no values, which is not zero."""
    if not values:
        return None
    return sorted(values)[nearest_rank(quantile, len(values)) - 1]


def median(values: Sequence[Exact]) -> Exact | None:
    """The mean of the middle two, exact; None of no values."""
    if not values:
        return None
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if high == UNBOUNDED:
        return UNBOUNDED
    return (Fraction(low) + Fraction(high)) / 2


@dataclass(frozen=True, slots=True)
class Pooled:
    """Values of single runs in ascending order, each with the task it belongs to; whole tasks are drawn together."""

    values: tuple[int, ...]
    tasks: NDArray[np.intp]

    @classmethod
    def of(cls, by_task: Sequence[Sequence[int]]) -> Pooled:
        pairs = sorted((value, task) for task, values in enumerate(by_task) for value in values)
        return cls(tuple(value for value, _ in pairs), np.array([task for _, task in pairs], dtype=np.intp))


def resampled_positions(
    pooled: Pooled, drawn: NDArray[np.float32], quantiles: Sequence[Fraction]
) -> list[NDArray[np.int64]]:
    """For each quantile, the position in `pooled.values` that each replicate lands on; -1 where it drew no value.

    `drawn` holds the multiplicities, tasks x replicates. Cumulated counts stay below 2**24, so sums and products of
    32-bit floats are exact. Counting goes block by block first, then inside the one block that holds the rank.
    """
    count, (tasks, resamples) = len(pooled.values), drawn.shape
    if count == 0:
        return [np.full(resamples, -1, dtype=np.int64) for _ in quantiles]
    size = isqrt(count) + 1
    blocks = -(-count // size)
    in_block = np.bincount(pooled.tasks * blocks + np.arange(count) // size, minlength=tasks * blocks)
    ends = np.cumsum(in_block.reshape(tasks, blocks), axis=1).astype(np.float32)
    cumulated = ends.T @ drawn
    totals = cumulated[-1].astype(np.int64)
    padded = np.concatenate([pooled.tasks, np.full(size * blocks - count, pooled.tasks[-1])]) * resamples
    replicates, flat = np.arange(resamples), drawn.ravel()
    positions = []
    for quantile in quantiles:
        exact_ranks = (quantile.numerator * totals + quantile.denominator - 1) // quantile.denominator
        ranks = exact_ranks.astype(np.float32)
        block_of = np.minimum(np.add.reduce(cumulated < ranks, axis=0, dtype=np.int64), blocks - 1)
        within = np.where(block_of > 0, cumulated[np.maximum(block_of - 1, 0), replicates], np.float32(0))
        found, base = block_of * size, block_of * size
        for step in range(size):
            within = within + flat.take(padded.take(base + step) + replicates)
            found += within < ranks
        positions.append(np.where(totals > 0, found, -1))
    return positions
