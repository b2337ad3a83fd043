"""The percentile interval by nearest rank: of 10,000 replicates, from the 250th to the 9,750th."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from controller.analyse.quantile import nearest_rank
from controller.analyse.replicates import Ordered
from controller.domain.exact import Exact

LOW: Final = Fraction(25, 1000)
HIGH: Final = Fraction(975, 1000)


def ranks(resamples: int) -> tuple[int, int]:
    """The ranks of both ends, counted from 1."""
    return nearest_rank(LOW, resamples), nearest_rank(HIGH, resamples)


def percentile_interval(replicates: Ordered) -> tuple[Exact, Exact]:
    """Both ends; each is a replicate, so an infinite one stays infinite."""
    first, last = ranks(replicates.resamples)
    return replicates.low_at(first), replicates.high_at(last)
