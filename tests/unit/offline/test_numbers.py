"""The arithmetic of the analysis against definitions so plain that they need no trust."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.offline.beside import sign_flip_p, zero_tails
from controller.offline.draws import Draws, nearest_rank
from controller.offline.holm import ALPHA, family, interval
from controller.offline.replicates import INFINITY, ZERO, Pair, Replicates, quotient
from controller.offline.shown import INFINITE, decimal, shown

PAIRS = st.tuples(st.integers(0, 30), st.integers(0, 5)).map(lambda pair: pair if pair[1] else INFINITY)


def value(pair: Pair) -> Fraction | float:
    return Fraction(*pair) if pair[1] else INFINITE


@given(st.lists(PAIRS, min_size=1, max_size=30))
def test_ranks_are_those_of_sorted_rationals(pairs: list[Pair]) -> None:
    found = Replicates(pairs)
    ordered = sorted(map(value, pairs))
    assert [found.low_at(rank) for rank in range(1, len(pairs) + 1)] == ordered
    for null in (0, 1):
        assert found.at_most(null) == sum(each <= null for each in ordered)
        assert found.at_least(null) == sum(each >= null for each in ordered)
    assert found.infinite == sum(each == INFINITE for each in ordered)


def test_values_that_a_float_can_not_tell_apart_are_in_order() -> None:
    large = 10**30
    pairs = [(large + 2, large + 1), (large + 1, large), (large, large), (large - 1, large)]
    found = Replicates(pairs)
    assert [found.low_at(rank) for rank in (1, 2, 3, 4)] == sorted(map(value, pairs))
    assert (found.at_most(1), found.at_least(1)) == (2, 3)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((6, 2), (3, 1), 1, 1),
        (INFINITY, (3, 1), INFINITE, INFINITE),
        ((3, 1), INFINITY, 0, 0),
        (INFINITY, INFINITY, 0, INFINITE),
        (ZERO, (3, 1), 0, 0),
        ((3, 1), ZERO, INFINITE, INFINITE),
        ((0, 4), (0, 5), 0, INFINITE),
        (INFINITY, ZERO, INFINITE, INFINITE),
        (ZERO, INFINITY, 0, 0),
    ],
)
def test_quotients_with_infinities(first: Pair, second: Pair, low: float, high: float) -> None:
    found = quotient(first, second)
    assert (value(found[0]), value(found[1])) == (low, high)


@settings(max_examples=30)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=5))
def test_exact_tails_are_those_of_every_resample(values: list[int]) -> None:
    sums = [sum(drawn) for drawn in product(values, repeat=len(values))]
    assert zero_tails(values) == (
        Fraction(sum(each <= 0 for each in sums), len(sums)),
        Fraction(sum(each >= 0 for each in sums), len(sums)),
    )


@given(st.lists(st.integers(-3, 3), max_size=8))
def test_the_sign_flip_test_is_that_of_every_pattern(values: list[int]) -> None:
    sums = [
        abs(sum(v * s for v, s in zip(values, signs, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    assert sign_flip_p(values) == Fraction(sum(each >= abs(sum(values)) for each in sums), len(sums))


def test_draws_are_those_of_the_definition() -> None:
    draws = Draws("ab" * 32, 5, 3)
    for number, row in enumerate(draws.rows):
        raw = hashlib.shake_128(draws.label.encode() + number.to_bytes(8, "little")).digest(40)
        assert list(row) == [int.from_bytes(raw[8 * i : 8 * i + 8], "little") * 5 >> 64 for i in range(5)]
    assert draws.label == f"shake128-mulshift64/v1|{'ab' * 32}|harness-round|T=5|"


@given(st.lists(st.lists(st.integers(0, 2**70), min_size=4, max_size=4), min_size=1, max_size=4))
def test_packed_sums_are_sums(columns: list[list[int]]) -> None:
    draws = Draws("cd" * 32, 4, 6)
    assert draws.sums(columns) == [[sum(column[task] for task in row) for row in draws.rows] for column in columns]


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=4, max_size=4).filter(any))
def test_packed_quantiles_are_quantiles(by_task: list[list[int]]) -> None:
    draws, shares = Draws("ef" * 32, 4, 20), [Fraction(1, 2), Fraction(9, 10)]
    for share, found in zip(shares, draws.quantiles(by_task, shares), strict=True):
        for row, answer in zip(draws.rows, found, strict=True):
            pool = [each for task in row for each in by_task[task]]
            assert answer == (nearest_rank(pool, share) if pool else None)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=99, max_size=99), min_size=1, max_size=4), st.booleans())
def test_an_interval_excludes_the_null_value_exactly_when_holm_rejects(
    samples: list[list[int]], one_unknown: bool
) -> None:
    members: list[Replicates | None] = [Replicates([(each, 7) for each in sample]) for sample in samples]
    members += [None] * one_unknown
    for one in family(members, 99, 0):
        if one.low is None or one.high is None:
            assert one.p == 1
            assert not one.rejected
        else:
            assert (one.low > 0 or one.high < 0) == one.rejected == (one.adjusted <= ALPHA)


def test_too_few_replicates_have_no_ends() -> None:
    assert interval(Replicates([ZERO] * 30)) == (0, -INFINITE, INFINITE)


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(0, 5))
def test_decimals_are_rounded_half_to_even(numerator: int, denominator: int, places: int) -> None:
    number = Fraction(numerator, denominator)
    assert Fraction(decimal(number, places)) == Fraction(round(number * 10**places), 10**places)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (Fraction(2, 3), "share", "66.7 %"), (Fraction(1, 20), "usd", "$0.0500"), (Fraction(3), "usd", "$3.00"),
        (Fraction(12_345), "ms", "12.3 s"), (Fraction(600_000), "ms", "10.0 min"), (Fraction(4_210), "tokens", "4,210"),
        (Fraction(7, 8), "ratio", "0.88"), (None, "share", "n/a"), (INFINITE, "usd", "unbounded"),
        (-INFINITE, "share", "−unbounded"), (Fraction(-1, 8), "ratio", "−0.12"),
    ],
)  # fmt: skip
def test_what_readers_see(number: Fraction | float | None, unit: str, text: str) -> None:
    assert shown(number, unit) == text
