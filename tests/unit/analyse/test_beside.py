"""Columns that decide nothing: exact where they say so, and out of the rules' reach."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.analyse import PlanInputs, analyse
from controller.analyse.beside import beside
from controller.analyse.enumerate import zero_tails
from controller.analyse.holm import interval
from controller.analyse.replicates import WholeReplicates
from controller.analyse.rules import headline
from controller.protocols.harness_round.decision import PairEvidence, Thresholds, decide
from controller.protocols.harness_round.estimates import NonDecisional, pair_evidence
from controller.protocols.harness_round.manifest import all_pairs
from tests.world.rounds import SEED, realistic


@pytest.mark.parametrize(("tasks", "discordant"), [(50, 4), (100, 7), (400, 8)])
def test_discordant_tasks_all_one_way_leave_a_tail_of_known_size(tasks: int, discordant: int) -> None:
    """A resample is at or below zero only if it misses them all: probability (1 - k/T)^T."""
    at_most, at_least, total = zero_tails([1] * discordant + [0] * (tasks - discordant))
    assert Fraction(at_most, total) == (1 - Fraction(discordant, tasks)) ** tasks
    assert at_least == total


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_exchanging_the_arms_exchanges_the_tails(values: list[int]) -> None:
    at_most, at_least, total = zero_tails(values)
    assert zero_tails([-value for value in values]) == (at_least, at_most, total)


def columns(values: list[int], *, pairs: int = 66) -> NonDecisional:
    replicates = WholeReplicates(np.array([*range(-50, 50)], dtype=np.int64), Fraction(1, 300))
    return beside(values, {"success": replicates, "cost": None, "time": None}, repeats=3, pairs=pairs)


def test_the_detectable_difference_is_that_of_the_observed_spread() -> None:
    """100 tasks whose differences have a spread of 0.27 tell 7.6 points apart, 11.4 at the first of 66 steps."""
    found = columns([1, -1] * 33 + [0] * 34)  # a variance of 66/99 of a third squared: a spread of 0.2722
    assert found.difference_sd == "0.272165526976"
    assert (found.detectable_unadjusted_shown, found.detectable_at_first_step_shown) == ("7.6 points", "11.5 points")


def test_what_is_not_qualified_has_no_exact_columns() -> None:
    found = beside([1, 0, -1], {"success": None, "cost": None, "time": None}, repeats=3, pairs=3)
    assert (found.sign_flip_p, found.exact_p, found.difference_sd, found.detectable_unadjusted) == (None,) * 4
    assert (found.tasks_for_first, found.tasks_for_second, found.tasks_even) == (1, 1, 1)
    assert found.reason == "the pair is not qualified"


def test_too_many_tasks_leave_the_exact_tail_out() -> None:
    assert columns([1, 0] * 201).exact_p is None
    assert columns([1, 0] * 200).exact_p is not None


def test_the_bonferroni_band_has_the_level_of_all_pairs() -> None:
    band = columns([1, 0, -1], pairs=2).bonferroni[0]
    replicates = WholeReplicates(np.array([*range(-50, 50)], dtype=np.int64), Fraction(1, 300))
    k, low, high = interval(replicates, Fraction(1, 40))
    assert (band.level, band.k, band.low, band.high) == ("1/40", k, str(low), str(high))
    assert columns([1, 0, -1], pairs=66).bonferroni[0].low == "-unbounded"  # 100 replicates hold no such tail


def test_the_rules_have_no_place_for_these_columns() -> None:
    assert {field.name for field in fields(PairEvidence)}.isdisjoint(NonDecisional.model_fields)
    assert NonDecisional.model_fields["decides"].default is False


def test_a_decision_follows_from_the_published_intervals_alone() -> None:
    rows = realistic([f"t{task}" for task in range(30)], ["a", "b", "c", "d"], seed=5)
    arms = ("a", "b", "c", "d")
    plan = PlanInputs(
        seed=SEED,
        comparisons=all_pairs(arms),
        arms=arms,
        tasks=tuple(sorted({row.task for row in rows})),
        replicates=3,
        resamples=500,
    )
    analysis = analyse(rows, plan)
    for pair in analysis.pairs:
        assert decide(pair_evidence(pair, analysis), Thresholds()) == pair.decision
    assert headline(analysis.pairs, ()) == analysis.headline
