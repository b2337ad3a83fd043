"""Nothing depends on rounding: floats only sort, and every rank and count is that of the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse.draws import Resampler, per_success, ratio_per_success
from controller.analyse.enumerate import sign_flip_p, sum_distribution
from controller.analyse.holm import holm_intervals, p_value, step_down
from controller.analyse.quantile import Pooled, at_rank
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import matrix, words
from controller.domain.exact import UNBOUNDED, Exact, decimal_text, exact_from_text, exact_text

RESAMPLES = 120
counts = st.integers(0, 3)
amounts = st.one_of(st.integers(0, 5), st.integers(0, 10**15), st.integers(10**40, 10**40 + 2))


def true_ratio(weights: list[int], spend: list[list[int]], hits: list[list[int]]) -> tuple[Exact, Exact]:
    """The low and high value of one replicate, in plain rationals."""
    (spent_a, spent_b), (hits_a, hits_b) = (
        [sum(weight * value for weight, value in zip(weights, one, strict=True)) for one in both]
        for both in (spend, hits)
    )
    if (hits_a == 0 and hits_b == 0) or (hits_a and hits_b and spent_a == spent_b == 0):
        return Fraction(0), UNBOUNDED
    if hits_a == 0 or (hits_b and spent_b == 0):
        return UNBOUNDED, UNBOUNDED
    value = Fraction(spent_a * hits_b, hits_a * spent_b) if hits_b else Fraction(0)
    return value, value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(amounts, amounts, counts, counts), min_size=1, max_size=6), st.data())
def test_ratios_rank_and_count_as_rationals_do(tasks: list[tuple[int, int, int, int]], data: st.DataObject) -> None:
    spend_a, spend_b, hits_a, hits_b = (list(column) for column in zip(*tasks, strict=True))
    resampler = Resampler.of("0" * 64, len(tasks), RESAMPLES)
    first, second, ours, theirs = resampler.sums([spend_a, spend_b, hits_a, hits_b])
    found = ratio_per_success(first, ours.limbs[0], second, theirs.limbs[0])
    true = [true_ratio(row, [spend_a, spend_b], [hits_a, hits_b]) for row in resampler.drawn.tolist()]
    rank = data.draw(st.integers(1, RESAMPLES))
    assert found.low_at(rank) == sorted(low for low, _ in true)[rank - 1]
    assert found.high_at(rank) == sorted(high for _, high in true)[rank - 1]
    assert found.at_most(Fraction(1)) == sum(low <= 1 for low, _ in true)
    assert found.at_least(Fraction(1)) == sum(high >= 1 for _, high in true)
    costs = [
        Fraction(sum(w * s for w, s in zip(row, spend_a, strict=True)), 7 * hits) if hits else UNBOUNDED
        for row, hits in zip(resampler.drawn.tolist(), ours.limbs[0].tolist(), strict=True)
    ]
    assert per_success(first, Fraction(1, 7), ours.limbs[0]).low_at(rank) == sorted(costs)[rank - 1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 40), max_size=4), min_size=1, max_size=7),
    st.fractions(Fraction(1, 100), 1, max_denominator=100),
)
def test_resampled_quantiles_are_those_of_the_pooled_runs(by_task: list[list[int]], quantile: Fraction) -> None:
    resampler = Resampler.of("0" * 64, len(by_task), 40)
    pooled = Pooled.of(by_task)
    (positions,) = resampler.positions(pooled, [quantile])
    for weights, position in zip(resampler.drawn.tolist(), positions.tolist(), strict=True):
        pool = [value for weight, task in zip(weights, by_task, strict=True) for value in task * weight]
        assert (pooled.values[position] if position >= 0 else None) == at_rank(pool, quantile)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_interval_excludes_the_null_exactly_when_holm_rejects(tails: list[int], chance: object) -> None:
    ranks = np.arange(1, 200, dtype=np.int64)
    family = [WholeReplicates(ranks - tail, Fraction(1, 7)) for tail in tails]
    found = holm_intervals([*family, None], resamples=199, null=Fraction(0))
    for one in found[:-1]:
        assert one.low is not None and one.high is not None
        assert one.rejected == (one.low > 0 or one.high < 0) == (one.adjusted <= Fraction(1, 20))
    assert (found[-1].p, found[-1].rejected, found[-1].low) == (Fraction(1), False, None)


def test_equal_p_values_share_one_level() -> None:
    steps = step_down([Fraction(1, 1000), Fraction(1, 1000), Fraction(1, 2)])
    assert [step.level for step in steps] == [Fraction(1, 60), Fraction(1, 60), Fraction(1, 20)]


def test_p_is_never_zero_and_never_above_one() -> None:
    assert p_value(10_000, 0, 10_000) == Fraction(2, 10_001)
    assert p_value(10_000, 10_000, 10_000) == 1


def test_a_row_of_draws_depends_on_nothing_else() -> None:
    whole = matrix("label|", 5, 7)
    assert np.array_equal(matrix("label|", 3, 7), whole[:3])
    assert [int(word) * 7 >> 64 for word in words("label|", 4, 7)] == whole[4].tolist()
    with pytest.raises(ValueError, match="0 tasks"):
        matrix("label|", 5, 0)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([], 1), ([0, 0], 1), ([1], 1), ([1, 1, 1, 1], Fraction(1, 8)), ([3, -1], 1), ([3, 2, 1], Fraction(1, 4))],
)
def test_sign_flip_by_hand(differences: list[int], expected: Fraction) -> None:
    assert sign_flip_p(differences) == expected
    assert sign_flip_p([-difference for difference in differences]) == expected


def test_sum_distribution_holds_every_resample() -> None:
    ways = sum_distribution([-1, 0, 2])
    assert sum(ways.values()) == 27
    assert (ways[-3], ways[6], min(ways), max(ways)) == (1, 1, -3, 6)


@pytest.mark.parametrize("text", ["1/3", "-2", "unbounded", "-unbounded"])
def test_exact_texts_round_trip(text: str) -> None:
    assert exact_text(exact_from_text(text)) == text
    with pytest.raises(ValueError, match="not an exact number"):
        exact_text(0.5)


def test_decimals_round_half_to_even() -> None:
    assert [decimal_text(Fraction(1, 8), 2), decimal_text(Fraction(3, 8), 2), decimal_text(Fraction(-5, 2), 0)] == [
        "0.12", "0.38", "-2",
    ]  # fmt: skip
