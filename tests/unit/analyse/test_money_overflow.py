"""Money never wraps: numpy's 64-bit integers overflow without a word, so what could is summed in limbs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from controller.analyse.draws import Resampler, per_success

TASKS, RESAMPLES = 5, 64


@pytest.mark.parametrize(
    "largest",
    [2**24 // TASKS, 2**53 + 1, 2**62 // TASKS, 2**62 // TASKS + 1, 2**63 // TASKS + 1, 2**63 - 1, 2**63, 2**100 + 1],
)
def test_money_does_not_overflow_64_bits(largest: int) -> None:
    column = [largest, largest - 1, largest, 0, 1]
    resampler = Resampler.of("0" * 64, TASKS, RESAMPLES)
    cost, successes = resampler.sums([column, [1] * TASKS])
    rows = resampler.drawn.tolist()
    true = [sum(weight * value for weight, value in zip(row, column, strict=True)) for row in rows]
    assert max(true) > 2 * largest  # a sum that 64 bits do not hold, once a cost is near their end
    limbs = zip(*(limb.tolist() for limb in cost.limbs), strict=True)
    assert [sum(limb << (40 * place) for place, limb in enumerate(row)) for row in limbs] == true
    found = per_success(cost, Fraction(1, 10**10), successes.limbs[0])
    assert [found.low_at(rank) for rank in range(1, RESAMPLES + 1)] == [
        Fraction(total, TASKS * 10**10) for total in sorted(true)
    ]
