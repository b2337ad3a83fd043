"""Estimates and decisions on rounds small enough to check by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from controller.analyse import PlanInputs, analyse
from controller.domain.dataset import LogicalRunRow
from controller.domain.outcome import EndKind
from controller.protocols.harness_round.estimates import Analysis
from controller.protocols.harness_round.manifest import all_pairs
from tests.world.rounds import SEED, attempt, realistic, run


def plan_for(rows: Sequence[LogicalRunRow], resamples: int = 1_000) -> PlanInputs:
    arms = tuple(sorted({row.arm for row in rows}))
    return PlanInputs(
        seed=SEED,
        comparisons=all_pairs(arms),
        arms=arms,
        tasks=tuple(sorted({row.task for row in rows})),
        replicates=max(row.replicate for row in rows),
        resamples=resamples,
    )


def grid(wins: dict[str, Sequence[int]], **costs: str) -> list[LogicalRunRow]:
    """Rows of arms with so many successes of three per task."""
    return [
        run(f"t{task:03d}", arm, replicate, success=replicate <= hits, usd=costs.get(arm, "0.05"))
        for arm, per_task in wins.items()
        for task, hits in enumerate(per_task)
        for replicate in (1, 2, 3)
    ]


def analysed(rows: list[LogicalRunRow]) -> Analysis:
    return analyse(rows, plan_for(rows))


def test_the_estimates_of_one_arm_by_hand() -> None:
    analysis = analysed(grid({"a": [3, 1, 0, 2], "b": [3, 3, 3, 3]}))
    arm = analysis.arms[0]
    assert (arm.successes, arm.logical_runs, arm.success_rate.value) == (6, 12, "1/2")
    assert arm.cost_per_success.value == "1/10"  # 12 runs of 5 cents bought six successes
    assert arm.cost_per_success.value_shown == "$0.1000"
    assert arm.tokens_per_success.value == "25600"
    assert (arm.tasks_disagreeing, arm.disagreement.value) == (2, "1/2")
    assert [task.successes for task in arm.tasks] == [3, 1, 0, 2]
    assert arm.quantile("wall_ms_p90").value == "60000"
    assert arm.quantile("turns_p50").value == "6"
    assert arm.cache_hit_rate.value == "3/4"
    assert analysis.pairs[0].success.value == "-1/2"
    assert (analysis.pairs[0].beside.tasks_for_first, analysis.pairs[0].beside.tasks_for_second) == (0, 3)
    assert analysis.pairs[0].beside.sign_flip_p == "1/4"


def test_a_clear_winner_is_named_first_with_the_measured_difference() -> None:
    analysis = analysed(grid({"a": [0] * 10 + [1] * 10, "b": [3] * 20}))
    decision = analysis.pairs[0].decision
    assert (decision.rule, decision.winner, decision.loser) == ("success", "b", "a")
    assert analysis.headline.startswith("b was more successful than a: +83.3 percentage points")


def test_equal_arms_show_no_reliable_difference() -> None:
    analysis = analysed(grid({"a": [3, 1, 0, 2] * 10, "b": [3, 1, 0, 2] * 10}))
    pair = analysis.pairs[0]
    assert (pair.success.low, pair.success.high, pair.success.p) == ("0", "0", "1")
    assert pair.decision.conclusion == "no reliable difference"
    assert analysis.headline == "a and b: no reliable difference."


def test_the_cheaper_of_two_equally_successful_arms_is_more_efficient() -> None:
    analysis = analysed(grid({"a": [3, 1, 0, 2] * 10, "b": [3, 1, 0, 2] * 10}, a="0.04", b="0.05"))
    pair = analysis.pairs[0]
    assert (pair.cost.value, pair.cost.high) == ("4/5", "4/5")
    assert (pair.decision.rule, pair.decision.winner) == ("cost", "a")
    assert pair.sentence == (
        "a was more efficient than b: its cost per success was 20.0 % lower, at tied success "
        "(Holm-adjusted 95 % interval of the ratio 0.800 to 0.800)."
    )


def test_nine_percent_cheaper_is_not_enough() -> None:
    analysis = analysed(grid({"a": [3, 1] * 20, "b": [3, 1] * 20}, a="0.0910", b="0.1000"))
    assert analysis.pairs[0].decision.rule == "none"
    cost = analysis.pairs[0].decision.findings[1]
    assert cost.sentence.startswith("cost: neither is at least 10 % lower (a: ")
    assert [condition.met for condition in cost.conditions] == [True, False, True]


def test_the_faster_arm_wins_when_cost_also_ties() -> None:
    rows = [
        run(f"t{task:03d}", arm, replicate, success=True, wall_ms=wall_ms)
        for arm, wall_ms in (("a", 60_000), ("b", 40_000))
        for task in range(20)
        for replicate in (1, 2, 3)
    ]
    decision = analysed(rows).pairs[0].decision
    assert (decision.rule, decision.winner) == ("time", "b")


@pytest.mark.parametrize("end", [EndKind.TIMEOUT, EndKind.HARD_LIMIT, EndKind.INFRASTRUCTURE, EndKind.WRITTEN_OFF])
def test_a_censored_time_wins_nothing_for_the_arm_it_belongs_to(end: EndKind) -> None:
    """An arm whose p90 was cut at the limit may be slower without bound, so it is never called faster."""
    cut = attempt(end=end, wall_ms=30_000, verified=None)
    rows = [
        run(
            f"t{task:03d}", arm, replicate, success=arm == "b" or replicate < 3, wall_ms=60_000,
            attempts=[cut] if arm == "a" and replicate == 3 else [attempt(wall_ms=20_000 if arm == "a" else 60_000)],
        )
        for arm in ("a", "b")
        for task in range(30)
        for replicate in (1, 2, 3)
    ]  # fmt: skip
    analysis = analysed(rows)
    slow = analysis.arms[0].quantile("wall_ms_p90")
    assert (slow.value, slow.value_shown, slow.lower_bound_only) == ("30000", "≥ 30.0 s", True)
    assert analysis.pairs[0].time.high == "unbounded"
    assert analysis.pairs[0].time.value is None


def test_no_success_costs_without_bound() -> None:
    analysis = analysed(grid({"a": [0, 0, 0], "b": [3, 3, 0]}))
    arm = analysis.arms[0]
    assert (arm.cost_per_success.value, arm.cost_per_success.low) == ("unbounded", "unbounded")
    assert arm.tokens_per_success.value_shown == "unbounded"
    assert analysis.arms[1].cost_per_success.high == "unbounded"  # 1 in 27 resamples holds no success
    assert analysis.pairs[0].cost.value == "unbounded"


def test_unknown_cost_is_null_and_blocks_the_pair_but_not_the_family() -> None:
    rows = grid({"a": [3, 3, 3], "b": [0, 0, 0], "c": [3, 3, 3]})
    rows[0] = run("t000", "a", 1, outcome="invalid", attempts=[attempt(usd=None)])
    analysis = analyse(rows, plan_for(rows))
    broken = analysis.arms[0]
    assert (broken.successes, broken.logical_runs, broken.invalid) == (8, 9, 1)
    assert (broken.cost_per_success.value, broken.usd_total) == (None, None)
    assert "1 of 9" in broken.cost_per_success.reason
    assert broken.success_rate_if_unknown_succeeded == "1"
    blocked, healthy = analysis.pairs[0], analysis.pairs[2]
    assert (blocked.success.qualified, blocked.success.p, blocked.success.low) == (False, "1", None)
    assert blocked.decision.rule == "none"
    assert healthy.success.level == "1/60"  # m stays 3
    assert any("a: 1 invalid and 0 missing" in warning for warning in analysis.warnings)


def test_a_missing_run_counts_against_the_arm_and_has_no_time() -> None:
    rows = grid({"a": [3, 3], "b": [3, 3]})
    rows[0] = run("t000", "a", 1, outcome="missing", attempts=[])
    arm = analyse(rows, plan_for(rows)).arms[0]
    assert (arm.missing, arm.success_rate.value, arm.quantile("wall_ms_p50").logical_runs) == (1, "5/6", 5)


def test_sealed_tasks_are_primary() -> None:
    rows = [
        run(task, arm, replicate, success=success, visibility=visibility)
        for task, visibility, success in (("p1", "public", True), ("s1", "sealed", False), ("s2", "sealed", True))
        for arm in ("a", "b")
        for replicate in (1, 2, 3)
    ]
    analysis = analysed(rows)
    assert (analysis.scope, analysis.task_ids) == ("sealed", ("s1", "s2"))
    assert analysis.arms[0].success_rate.value == "1/2"
    by_kind = {record.visibility: record.successes for record in analysis.arms[0].by_visibility}
    assert by_kind == {"public": 3, "sealed": 3}


def test_would_have_passed_is_recorded_and_is_not_a_success() -> None:
    rows = grid({"a": [3, 3], "b": [3, 3]})
    crashed = attempt(end=EndKind.HARNESS_CRASH, verified=True, would_have_passed=True)
    rows[0] = run("t000", "a", 1, success=False, attempts=[crashed])
    arm = analyse(rows, plan_for(rows)).arms[0]
    assert (arm.would_have_passed, arm.successes) == (1, 5)
    assert arm.success_rate_if_would_have_passed == "1"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_swapping_the_arms_mirrors_every_decision(seed: int) -> None:
    rows = realistic([f"t{task}" for task in range(12)], ["a", "b"], seed=seed)
    plan = plan_for(rows)
    forwards = analyse(rows, plan).pairs[0]
    backwards = analyse(rows, plan.model_copy(update={"comparisons": (("b", "a"),)})).pairs[0]
    assert (forwards.decision.rule, forwards.decision.winner) == (backwards.decision.rule, backwards.decision.winner)
    assert forwards.success.low is not None and backwards.success.high is not None
    assert Fraction(forwards.success.low) == -Fraction(backwards.success.high)
    assert forwards.success.p == backwards.success.p
    if forwards.cost.low not in (None, "0", "unbounded"):
        assert backwards.cost.high is not None
        assert Fraction(forwards.cost.low) == 1 / Fraction(backwards.cost.high)


def test_a_free_arm_is_flagged_and_two_free_arms_have_no_ratio() -> None:
    analysis = analysed(grid({"a": [3, 3], "b": [3, 3]}, a="0", b="0"))
    assert (analysis.arms[0].cost_per_success.value, analysis.arms[0].cost_per_success.high) == ("0", "0")
    assert (analysis.pairs[0].cost.value, analysis.pairs[0].cost.undefined_replicates) == (None, 1_000)
    assert analysis.pairs[0].decision.rule == "none"
    assert "a: its successes cost nothing" in " ".join(analysis.warnings)


def test_few_tasks_and_several_models_are_warned_of() -> None:
    rows = [row.model_copy(update={"model": row.arm}) for row in grid({"a": [3, 3], "b": [3, 3]})]
    warnings = " ".join(analysed(rows).warnings)
    assert "Only 2 tasks:" in warnings
    assert "different models" in warnings
    assert "Only 1 task:" in " ".join(analysed(grid({"a": [3], "b": [3]})).warnings)
