"""Every estimate of an arm has its interval, and the value that the table of edge cases gives."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse import analyse
from controller.analyse.draws import Resampler, share
from controller.analyse.pairs import seed_sensitive
from controller.domain.dataset import LogicalRunRow
from controller.domain.outcome import EndKind
from controller.protocols.harness_round.estimates import Estimate
from controller.protocols.harness_round.manifest import METRICS
from tests.unit.analyse.test_rules import analysed, grid, plan_for
from tests.world.rounds import attempt, realistic, run

CRASH = attempt(end=EndKind.HARNESS_CRASH, verified=True, would_have_passed=True)


def ends(estimate: Estimate) -> tuple[str | None, str | None, str | None]:
    return estimate.value, estimate.low, estimate.high


def with_crashes(task: str, *replicates: int) -> list[LogicalRunRow]:
    """Two arms on two tasks, all passing, but for these repeats of arm a on that task."""
    rows = grid({"a": [3, 3], "b": [3, 3]})
    return [
        run(row.task, "a", row.replicate, success=False, attempts=[CRASH])
        if (row.arm, row.task) == ("a", task) and row.replicate in replicates
        else row
        for row in rows
    ]


def test_every_estimate_of_an_arm_has_an_interval() -> None:
    arm = analysed(realistic([f"t{task}" for task in range(12)], ["a", "b"])).arms[0]
    estimates = [
        arm.success_rate,
        arm.cost_per_success,
        arm.tokens_per_success,
        arm.conditional_quality,
        arm.cache_hit_rate,
        arm.would_have_passed_rate,
        arm.disagreement,
        *(record.share for record in arm.by_successes),
        *arm.quantiles,
    ]
    assert [one.estimand for one in estimates if one.low is None or one.high is None] == []
    of_pairs = {"success_difference", "cost_ratio", "wall_ms_p90_ratio"}
    named = {"tasks_by_successes" if "_of_3" in one.estimand else one.estimand for one in estimates}
    assert named | of_pairs == set(METRICS)  # what the manifest freezes is what is estimated


def test_conditional_quality_looks_at_runs_that_ended_normally() -> None:
    arm = analysed(with_crashes("t000", 1, 2)).arms[0]
    assert (arm.successes, arm.ended_normally) == (4, 4)
    assert ends(arm.conditional_quality) == ("1", "1", "1")
    assert ends(arm.success_rate) == ("2/3", "1/3", "1")


def test_a_share_of_nothing_may_be_anything() -> None:
    """One resample in four draws only the task without a normal end."""
    quality = analysed(with_crashes("t000", 1, 2, 3)).arms[0].conditional_quality
    assert ends(quality) == ("1", "0", "1")
    assert 150 < quality.undefined_replicates < 350


def test_conditional_quality_never_rescues_an_arm_that_seldom_ends() -> None:
    rows = [
        run(row.task, "a", row.replicate, success=False, attempts=[CRASH])
        if row.arm == "a" and row.replicate > 1
        else row
        for row in grid({"a": [3] * 20, "b": [3] * 20})
    ]
    analysis = analysed(rows)
    assert analysis.arms[0].conditional_quality.value == "1"
    assert (analysis.pairs[0].decision.rule, analysis.pairs[0].decision.winner) == ("success", "b")


def test_no_normal_end_has_no_conditional_quality() -> None:
    rows = [*with_crashes("t000", 1, 2, 3)]
    rows = [
        run(row.task, "a", row.replicate, success=False, attempts=[CRASH]) if row.arm == "a" else row for row in rows
    ]
    arm = analysed(rows).arms[0]
    assert ends(arm.conditional_quality) == (None, None, None)
    assert arm.conditional_quality.reason == "no logical run ended normally"
    assert ends(arm.would_have_passed_rate) == ("1", "1", "1")


def test_the_table_of_repeats_counts_tasks() -> None:
    arm = analysed(grid({"a": [0, 0, 1, 2, 3, 3, 3, 3], "b": [3] * 8})).arms[0]
    assert [record.tasks for record in arm.by_successes] == [2, 1, 1, 4]
    assert [record.share.value for record in arm.by_successes] == ["1/4", "1/8", "1/8", "1/2"]
    assert ends(arm.disagreement)[0] == "1/4"
    assert arm.by_successes[0].share.estimand == "tasks_with_0_of_3"


def tokens(arm: str, read: int, fresh: int) -> list[LogicalRunRow]:
    spent = attempt().model_copy(update={"tokens": {"in": fresh, "read": read, "out": 5}})
    return [
        run(task, name, replicate, attempts=[spent if name == arm else attempt()])
        for name in ("a", "b")
        for task in ("t1", "t2")
        for replicate in (1, 2, 3)
    ]


def test_cache_hits_of_no_input_are_not_applicable_and_no_hits_are_zero() -> None:
    nothing = analysed(tokens("a", 0, 0)).arms[0].cache_hit_rate
    assert (ends(nothing), nothing.value_shown, nothing.reason) == (
        (None, None, None), "n/a", "there were no input tokens",
    )  # fmt: skip
    assert ends(analysed(tokens("a", 0, 10)).arms[0].cache_hit_rate) == ("0", "0", "0")
    assert ends(analysed(tokens("a", 3, 1)).arms[0].cache_hit_rate) == ("3/4", "3/4", "3/4")


def test_the_scored_attempts_own_time_stands_beside_that_of_the_whole_run() -> None:
    tried = [attempt(1, end=EndKind.PROVIDER_ERROR, wall_ms=50_000, verified=None), attempt(2, wall_ms=10_000)]
    rows = [
        run(task, arm, replicate, attempts=tried) for arm in "ab" for task in ("t1", "t2") for replicate in (1, 2, 3)
    ]
    arm = analysed(rows).arms[0]
    assert (arm.quantile("wall_ms_p50").value, arm.quantile("scored_wall_ms_p50").value) == ("60000", "10000")


def test_a_run_that_never_ran_has_no_turns_and_hides_nobody_elses() -> None:
    rows = grid({"a": [3, 3], "b": [3, 3]})
    rows[0] = run("t000", "a", 1, outcome="missing", attempts=[])
    arm = analysed(rows).arms[0]
    assert (arm.quantile("turns_p50").value, arm.quantile("turns_p50").logical_runs) == ("6", 5)
    assert arm.quantile("usd_p50").value is None


amounts = st.one_of(st.integers(0, 4), st.integers(0, 10**40))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=6), st.integers(1, 120))
def test_shares_rank_as_rationals_do(tasks: list[tuple[int, int]], rank: int) -> None:
    parts, wholes = [part for part, _ in tasks], [part + rest for part, rest in tasks]
    resampler = Resampler.of("0" * 64, len(tasks), 120)
    found = share(*resampler.sums([parts, wholes]))
    sums = [
        [sum(w * v for w, v in zip(row, column, strict=True)) for column in (parts, wholes)]
        for row in resampler.drawn.tolist()
    ]
    assert found.low_at(rank) == sorted(Fraction(a, b) if b else Fraction(0) for a, b in sums)[rank - 1]
    assert found.high_at(rank) == sorted(Fraction(a, b) if b else Fraction(1) for a, b in sums)[rank - 1]
    assert found.undefined == sum(b == 0 for _, b in sums)


@pytest.mark.parametrize(
    ("nearest", "k", "expected"),
    [
        (0, 3, True),  # |0 - 2.5| <= 3 * 1.73
        (7, 3, True),  # 4.5 <= 5.20
        (8, 3, False),  # 5.5 > 5.20
        (202, 250, False),  # 47.5 > 47.43
        (203, 250, True),
        (296, 250, True),
        (297, 250, False),
        (0, 0, False),  # nothing can be rejected, whatever the seed
    ],
)
def test_a_tail_count_within_three_standard_errors_of_k_depends_on_the_seed(
    nearest: int, k: int, expected: bool
) -> None:
    assert seed_sensitive(nearest, k) is expected


def test_the_headline_names_who_beat_our_own_arm_first() -> None:
    rows = grid({"a": [3] * 20, "b": [3] * 20, "ours": [0] * 10 + [1] * 10})
    plan = plan_for(rows).model_copy(update={"own_arms": ("ours",)})
    told = analyse(rows, plan).headline
    assert told.startswith("a was more successful than ours: +83.3 percentage points")
    assert told.endswith("2 of 3 planned comparisons show a reliable difference: 2 in success.")
    assert analyse(rows, plan_for(rows)).headline == analyse(rows, plan).tally
    won = plan.model_copy(update={"own_arms": ("a",)})
    assert analyse(rows, won).headline == analyse(rows, won).tally


def test_too_few_resamples_for_the_family_are_warned_of() -> None:
    rows = grid({"a": [3, 0] * 30, "b": [3, 0] * 30, "c": [3, 0] * 30})
    few = analyse(rows, plan_for(rows, resamples=100)).warnings
    assert any("100 resamples are too few for 3 comparisons" in warning for warning in few)
