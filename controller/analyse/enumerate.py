"""Exact bootstrap distributions, for small cases and for sums of any size: the oracle of the Monte Carlo code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import comb, factorial
from typing import Final, TypeVar

CLUSTERS_MAX: Final = 9  # 24,310 distinct resamples; ten clusters already need 92,378
SIGN_FLIP_TASKS_MAX: Final = (
    400  # beyond it the exact convolution takes seconds per pair, for a column nobody decides on
)

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
    """The exact distribution of the sum of len(values) draws with replacement: value of the sum -> number of ways.

    The generating polynomial is packed into one big integer, so the convolution is a single power.
    """
    draws, least = len(values), min(values)
    width = max(1, (draws**draws).bit_length())
    packed = sum(times << (width * (value - least)) for value, times in Counter(values).items()) ** draws
    mask, counts, total = (1 << width) - 1, {}, draws * least
    digits = packed.to_bytes((packed.bit_length() + 7) // 8 or 1, "little")
    for place in range((max(values) - least) * draws + 1):
        start, shift = divmod(place * width, 8)
        piece = int.from_bytes(digits[start : start + (width + shift) // 8 + 1], "little") >> shift & mask
        if piece:
            counts[total + place] = piece
    return counts


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
