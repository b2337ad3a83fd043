"""The product against other people's code and against counting everything. Each test names its oracle.

Where a library defines a thing otherwise it is no oracle: scipy.stats.bootstrap and arch interpolate between
replicates, so neither is here.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from controller.analyse.draws import Resampler, per_success, ratio_per_success
from controller.analyse.enumerate import distribution, sign_flip_p, sign_test_p, sum_distribution, zero_tails
from controller.analyse.holm import interval, step_down
from controller.analyse.quantile import Pooled, at_rank
from controller.analyse.replicates import Ordered, WholeReplicates
from controller.analyse.wilson import wilson
from controller.domain.exact import UNBOUNDED, Exact

differences = st.lists(st.integers(-3, 3), min_size=1, max_size=60)
TASK = st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9), st.integers(0, 3))
QUANTILES = (Fraction(25, 1000), Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(975, 1000))


def packed_distribution(values: list[int]) -> Counter[int]:
    """All len(values)**len(values) sums, as the digits of one large power: not by the product's recurrence."""
    count, least = len(values), min(values)
    digit = (count**count).bit_length() + 1
    power = sum(1 << (digit * (value - least)) for value in values) ** count
    ways: Counter[int] = Counter()
    place = count * least
    while power:
        ways[place] += power & ((1 << digit) - 1)
        power >>= digit
        place += 1
    return +ways


@settings(max_examples=40, deadline=None)
@given(differences)
def test_exact_tails_by_packed_convolution(values: list[int]) -> None:
    ways = packed_distribution(values)
    assert sum_distribution(values) == dict(ways)
    below = sum(count for value, count in ways.items() if value <= 0)
    above = sum(count for value, count in ways.items() if value >= 0)
    assert zero_tails(values) == (below, above, len(values) ** len(values))


@pytest.mark.parametrize("values", [[3, -1, 0, 2], [0, 0, 0], [1], [-3, -2, 3, 1, 0, 0]])
def test_exact_distribution_by_full_enumeration(values: list[int]) -> None:
    sums = [sum(drawn) for drawn in itertools.product(values, repeat=len(values))]
    everything = Counter(sums)
    assert sum_distribution(values) == dict(everything)
    assert zero_tails(values) == (sum(one <= 0 for one in sums), sum(one >= 0 for one in sums), len(sums))
    by_weights = distribution(len(values), lambda times: sum(w * v for w, v in zip(times, values, strict=True)))
    assert by_weights == everything


def everything(tasks: int) -> tuple[list[tuple[int, ...]], Resampler]:
    """Each of the tasks**tasks resamples once, as plain indices and as the product's draws."""
    indices = list(itertools.product(range(tasks), repeat=tasks))
    drawn = np.array([np.bincount(row, minlength=tasks) for row in indices], dtype=np.int64)
    return indices, Resampler("all", "all", drawn, np.ascontiguousarray(drawn.T, dtype=np.float32))


def divided(above: int, below: int) -> Exact:
    return Fraction(above, below) if below else UNBOUNDED


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5).flatmap(lambda tasks: st.lists(TASK, min_size=tasks, max_size=tasks)))
def test_order_statistics_by_full_enumeration(tasks: list[tuple[int, int, int, int]]) -> None:
    """The percentile interval over every resample there is: cost per success, its ratio, and the difference."""
    indices, resampler = everything(len(tasks))
    spent, hits, others_spent, others_hits = resampler.sums([list(column) for column in zip(*tasks, strict=True)])
    sums = [[sum(tasks[task][field] for task in drawn) for field in range(4)] for drawn in indices]
    costs = [divided(c, s) for c, s, _, _ in sums]
    pairs = [ratio(*row) for row in sums]
    unit = Fraction(1, 3 * len(tasks))
    expected: list[tuple[Ordered, list[Exact], list[Exact]]] = [
        (per_success(spent, Fraction(1), hits.limbs[0]), costs, costs),
        (
            ratio_per_success(spent, hits.limbs[0], others_spent, others_hits.limbs[0]),
            [low for low, _ in pairs],
            [high for _, high in pairs],
        ),
    ]
    delta: list[Exact] = [(s - t) * unit for _, s, _, t in sums]
    expected.append((WholeReplicates(hits.limbs[0] - others_hits.limbs[0], unit), delta, delta))
    count = len(indices)
    k = (count + 1) * 5 // 200
    for found, lows, highs in expected:
        assert [found.low_at(rank) for rank in range(1, count + 1, 7)] == sorted(lows)[::7]
        assert [found.high_at(rank) for rank in range(1, count + 1, 7)] == sorted(highs)[::7]
        bounds = (sorted(lows)[k - 1], sorted(highs)[count - k]) if k else (-UNBOUNDED, UNBOUNDED)
        assert interval(found) == (k, *bounds)


def ratio(spent: int, hits: int, others_spent: int, others_hits: int) -> tuple[Exact, Exact]:
    """Low and high of one replicate by the table of edge cases."""
    ours, theirs = divided(spent, hits), divided(others_spent, others_hits)
    if ours == theirs and ours in (0, UNBOUNDED):
        return Fraction(0), UNBOUNDED
    if theirs == 0 or ours == UNBOUNDED:
        return UNBOUNDED, UNBOUNDED
    value = Fraction(0) if theirs == UNBOUNDED else Fraction(ours) / Fraction(theirs)
    return value, value


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=4))
def test_resampled_quantiles_by_full_enumeration(by_task: list[list[int]]) -> None:
    indices, resampler = everything(len(by_task))
    pooled = Pooled.of(by_task)
    for quantile, positions in zip(QUANTILES, resampler.positions(pooled, QUANTILES), strict=True):
        for drawn, position in zip(indices, positions.tolist(), strict=True):
            pool = [value for task in drawn for value in by_task[task]]
            assert (pooled.values[position] if position >= 0 else None) == at_rank(pool, quantile)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 30, 120, 1_000])
def test_wilson_by_statsmodels_and_scipy(count: int) -> None:
    for hits in {0, 1, count // 3, count // 2, count - 1, count}:
        found = wilson(hits, count)
        assert found is not None
        bounds = (float(found.low), float(found.high))
        assert bounds == pytest.approx(proportion_confint(hits, count, method="wilson"), abs=1e-12)
        theirs = stats.binomtest(hits, count).proportion_ci(method="wilson")
        assert bounds == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@settings(
    max_examples=10, deadline=None
)  # statsmodels collects garbage at every call, which takes longer than the rest
@given(st.lists(st.integers(1, 10_001), min_size=1, max_size=66))
def test_holm_by_statsmodels(numerators: list[int]) -> None:
    found = step_down([Fraction(one, 10_001) for one in numerators])
    rejected, adjusted, _, _ = multipletests([one / 10_001 for one in numerators], alpha=0.05, method="holm")
    assert [float(one.adjusted) for one in found] == pytest.approx(adjusted.tolist(), rel=1e-12)
    near = [abs(one.adjusted - Fraction(1, 20)) < Fraction(1, 10**9) for one in found]
    assert [one.rejected for one, close in zip(found, near, strict=True) if not close] == [
        bool(one) for one, close in zip(rejected, near, strict=True) if not close
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=300))
def test_nearest_rank_by_scipy_and_numpy(values: list[int]) -> None:
    """Both by `inverted_cdf`, at those quantiles where its floating-point rank is right for every count."""
    points = [float(quantile) for quantile in QUANTILES]
    ours = [at_rank(values, quantile) for quantile in QUANTILES]
    assert ours == np.quantile(values, points, method="inverted_cdf").tolist()
    assert ours == stats.quantile(np.array(values, dtype=float), np.array(points), method="inverted_cdf").tolist()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_sign_flips_by_scipy(values: list[int]) -> None:
    """scipy.stats.permutation_test over all 2**n sign patterns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = stats.permutation_test(
            (np.array(values, dtype=float),), lambda x, axis: np.sum(x, axis=axis), permutation_type="samples",
            n_resamples=np.inf, alternative="two-sided", vectorized=True,
        )  # fmt: skip
    found = sign_flip_p(values)
    assert found is not None
    assert float(found) == pytest.approx(float(theirs.pvalue), rel=1e-12)


@pytest.mark.parametrize("split", [(1, 0), (4, 0), (3, 2), (12, 3), (40, 21)])
def test_sign_test_by_scipy(split: tuple[int, int]) -> None:
    assert float(sign_test_p(*split)) == pytest.approx(stats.binomtest(split[0], sum(split)).pvalue, rel=1e-12)


def test_the_draws_follow_the_exact_distribution() -> None:
    """10,000 draws against all 8**8 resamples: no tail is off by more than four binomial errors."""
    values = [3, 2, 0, -1, 1, 0, -2, 1]
    resampler = Resampler.of("3" * 64, 8, 10_000)
    sums = resampler.drawn @ np.array(values, dtype=np.int64)
    ways, seen = sum_distribution(values), 0
    for value in sorted(ways):
        seen += ways[value]
        expected = seen / 8**8
        observed = np.count_nonzero(sums <= value) / 10_000
        assert abs(observed - expected) <= 4 * (expected * (1 - expected) / 10_000) ** 0.5 + 1e-9
