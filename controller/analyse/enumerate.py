"""Exact bootstrap distributions, for small cases and for sums of any size: the oracle of the Monte Carlo code."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import comb, factorial
from typing import Final, TypeVar

CLUSTERS_MAX: Final = 9  # 24,310 distinct resamples; ten clusters already need 92,378
SIGN_FLIP_TASKS_MAX: Final = 400  # beyond it the convolution takes seconds per pair, for a column that decides nothing

Value = TypeVar("Value")


def weighted_resamples(clusters: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every multiset of so many draws from so many clusters, as multiplicities, with the number of ways to draw it."""

    def extend(left: int, places: int) -> Iterator[tuple[int, ...]]:
        if places == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in extend(left - first, places - 1):
                yield (first, *rest)

    if not 1 <= clusters <= CLUSTERS_MAX:
        raise ValueError(f"{clusters} clusters: exact enumeration takes 1 to {CLUSTERS_MAX}")
    for drawn in extend(clusters, clusters):
        ways = factorial(clusters)
        for times in drawn:
            ways //= factorial(times)
        yield drawn, ways


def distribution(clusters: int, statistic: Callable[[tuple[int, ...]], Value]) -> Counter[Value]:
    """How many of the clusters**clusters equally likely resamples give each value of the statistic."""
    counts: Counter[Value] = Counter()
    for drawn, ways in weighted_resamples(clusters):
        counts[statistic(drawn)] += ways
    return counts


def sum_distribution(values: Sequence[int]) -> dict[int, int]:
    """The exact distribution of the sum of len(values) draws with replacement: value of the sum -> number of ways."""
    draws, least = len(values), min(values)
    ways = _power(Counter(value - least for value in values), draws)
    span = (max(values) - least) * draws
    return {draws * least + place: count for place, count in zip(range(span + 1), ways, strict=False) if count}


def zero_tails(values: Sequence[int]) -> tuple[int, int, int]:
    """How many of the n**n equally likely resamples of n values sum to at most zero, to at least zero, and n**n.

    Over n**n, they are the tails of the bootstrap distribution with infinitely many resamples.
    """
    draws, least, most = len(values), min(values), max(values)
    total = draws**draws
    if least > 0 or most < 0:
        return (0, total, total) if least > 0 else (total, 0, total)
    from_below = -least <= most  # whichever end of the sums is nearer to zero is the shorter way there
    steps = Counter(value - least if from_below else most - value for value in values)
    place = draws * (-least if from_below else most)
    before, at_zero = 0, 0
    for at_zero in itertools.islice(_power(steps, draws), place + 1):
        before += at_zero
    near, far = before, total - before + at_zero
    return (near, far, total) if from_below else (far, near, total)


def _power(weights: Mapping[int, int], exponent: int) -> Iterator[int]:
    """The coefficients of (sum of weights[i] x**i)**exponent in ascending order, without end. weights[0] is not zero.

    With P' Q = n P Q' for Q = P**n, each coefficient follows from as many before it as P has terms.
    """
    constant = weights[0]
    terms = [(step, weight, weight * step * (exponent + 1)) for step, weight in sorted(weights.items()) if step]
    known = [constant**exponent]
    yield known[0]
    for place in itertools.count(1):
        gathered = 0
        for step, weight, scaled in terms:
            if step > place:
                break
            gathered += (scaled - place * weight) * known[place - step]
        known.append(gathered // (place * constant))
        yield known[-1]


def sign_flip_p(differences: Sequence[int]) -> Fraction | None:
    """The two-sided p-value of the exact sign-flip test on per-task differences; 1 when all are zero.

    None when there are more than `SIGN_FLIP_TASKS_MAX` discordant tasks.
    """
    sizes = [abs(value) for value in differences if value]
    if len(sizes) > SIGN_FLIP_TASKS_MAX:
        return None
    if not sizes:
        return Fraction(1)
    width = len(sizes) + 1
    packed = 1
    for size in sizes:
        packed += packed << (width * size)
    # With a signs positive, the sum is 2a - sum(sizes); both tails of |sum| >= |observed| are mirror images.
    observed, total = abs(sum(differences)), sum(sizes)
    if observed == 0:
        return Fraction(1)
    upper, mask = packed >> (width * ((total + observed + 1) // 2)), (1 << width) - 1
    tail = 0
    while upper:
        tail += upper & mask
        upper >>= width
    return Fraction(2 * tail, 2 ** len(sizes))


def sign_test_p(for_first: int, for_second: int) -> Fraction:
    """The two-sided exact sign test on discordant tasks; 1 when there are none."""
    count = for_first + for_second
    tail = sum(comb(count, more) for more in range(max(for_first, for_second), count + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**count))
