"""Tiny rounds worked out by hand.

With two tasks, a quarter of all resamples draws the first task twice, a quarter the second twice, and half draw each
once. Of 10,000 resamples some 2,500 lie at either end, far more than the 250 of any tail: so an interval runs from the
smallest of the three values to the largest, whatever the seed.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.analyse.plan import plan_of_rows
from controller.analyse.rules import analyse
from controller.domain.dataset import LogicalRunRow
from controller.domain.outcome import EndKind
from controller.protocols.harness_round.estimates import Comparison, Estimate
from tests.world.cost_index import case
from tests.world.policy_matrix import POLICIES, matrix
from tests.world.rounds import SEED, attempt, run

OTHER_SEED = SEED[::-1]


def cell(task: str, arm: str, hits: int, *, usd: str = "1", seconds: int = 60) -> list[LogicalRunRow]:
    """Three repeats, the first `hits` of them successful."""
    return [run(task, arm, r, success=r <= hits, usd=usd, wall_ms=1_000 * seconds) for r in (1, 2, 3)]


def ends(one: Estimate | Comparison) -> tuple[str | None, str | None, str | None]:
    return one.value, one.low, one.high


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
def test_success_decides(seed: str) -> None:
    """a: 3/3 and 2/3 for $1 and $2 a run; b: 0/3 and 1/3 for half a dollar a run."""
    rows = [
        *cell("t1", "a", 3),
        *cell("t2", "a", 2, usd="2"),
        *cell("t1", "b", 0, usd="0.5"),
        *cell("t2", "b", 1, usd="0.5"),
    ]
    found = analyse(rows, plan_of_rows(rows, seed=seed))
    pair, a, b = found.pairs[0], found.arm("a"), found.arm("b")
    assert ends(a.success_rate) == ("5/6", "2/3", "1")
    assert ends(b.success_rate) == ("1/6", "0", "1/3")
    assert ends(a.cost_per_success) == ("9/5", "1", "3")  # 9 / 5; 6 / 6; 12 / 4
    assert ends(b.cost_per_success) == ("3", "3/2", "unbounded")  # 3 / 1; 3 / 2; 3 / 0
    assert 2_300 < b.cost_per_success.infinite_replicates < 2_700
    assert ends(pair.success) == ("2/3", "1/3", "1")
    assert ends(pair.cost) == ("3/5", "0", "2")  # (9/5) / 3; 1 / unbounded; 3 / (3/2)
    assert (pair.success.p, pair.success.k, pair.success.rejected) == ("2/10001", 250, True)
    assert (pair.decision.rule, pair.decision.winner) == ("success", "a")
    assert found.headline == (
        "a was more successful than b: +66.7 percentage points (Holm-adjusted 95 % interval +33.3 to +100.0)."
    )


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
def test_cost_decides_when_success_ties(seed: str) -> None:
    """Every run succeeds. a costs $1 a run; b $2 on the first task and $4 on the second."""
    rows = [*cell("t1", "a", 3), *cell("t2", "a", 3), *cell("t1", "b", 3, usd="2"), *cell("t2", "b", 3, usd="4")]
    found = analyse(rows, plan_of_rows(rows, seed=seed))
    pair = found.pairs[0]
    assert ends(pair.success) == ("0", "0", "0")
    assert ends(found.arm("b").cost_per_success) == ("3", "2", "4")
    assert ends(pair.cost) == ("1/3", "1/4", "1/2")
    assert (pair.decision.rule, pair.decision.winner) == ("cost", "a")
    assert found.headline == (
        "a was more efficient than b: its cost per success was 66.7 % lower, at tied success "
        "(Holm-adjusted 95 % interval of the ratio 0.250 to 0.500)."
    )


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
def test_time_decides_when_cost_ties_and_a_time_cut_short_saves_at_least_so_much(seed: str) -> None:
    """Both solve the first task only, in 10 s and 40 s. On the second, a fails after 20 s and b is stopped after 100 s.

    The p90 of six runs is the slowest one: 20 s against 100 s or more. Without the second task, 10 s against 40 s.
    """
    cut = [attempt(end=EndKind.TIMEOUT, verified=None, usd="1", wall_ms=100_000)]
    rows = [
        *cell("t1", "a", 3, seconds=10),
        *cell("t2", "a", 0, seconds=20),
        *cell("t1", "b", 3, seconds=40),
        *(run("t2", "b", r, success=False, attempts=cut) for r in (1, 2, 3)),
    ]
    found = analyse(rows, plan_of_rows(rows, seed=seed))
    pair = found.pairs[0]
    assert ends(pair.success) == ("0", "0", "0")
    assert ends(pair.cost) == ("1", "0", "unbounded")  # both without a success a quarter of the time: undefined
    assert ends(pair.time) == (None, "0", "1/4")
    assert (pair.decision.rule, pair.decision.winner) == ("time", "a")
    assert "p90 agent wall time was at least 80.0 % lower, at tied success" in found.headline
    assert "0.000 to 0.250" in found.headline
    assert found.arm("b").quantile("wall_ms_p90").value_shown == "≥ 100.0 s"
    assert "at least 80.0 % lower" in pair.decision.findings[2].sentence


def test_holm_steps_down_over_three_pairs() -> None:
    """a beats b and c on every task; b and c are equal. Two p-values of 2/10001, and one of 1.

    Levels: 1/20 over 3 for both that are rejected, for they tie; 1/20 over 1, where Holm stopped, for the other.
    """
    rows = [
        row for task in ("t1", "t2") for arm, hits in (("a", 3), ("b", 0), ("c", 0)) for row in cell(task, arm, hits)
    ]
    found = analyse(rows, plan_of_rows(rows, seed=SEED))
    assert [(one.success.p, one.success.p_adjusted, one.success.level, one.success.k) for one in found.pairs] == [
        ("2/10001", "6/10001", "1/60", 83),
        ("2/10001", "6/10001", "1/60", 83),
        ("1", "1", "1/20", 250),
    ]
    assert [ends(one.success) for one in found.pairs] == [("1", "1", "1"), ("1", "1", "1"), ("0", "0", "0")]
    assert found.pairs[2].sentence == "b and c: no reliable difference."
    assert found.headline == "2 of 3 planned comparisons show a reliable difference: 2 in success."


def test_a_cost_index_of_two_clusters() -> None:
    """Two instances of one cluster for $1 and $2, both verified; one of another for $4, not verified."""
    rows = [
        case("refund", "a", "t1", cluster="x", usd="1"),
        case("refund", "a", "t2", cluster="x", usd="2"),
        case("refund", "a", "t3", cluster="y", usd="4", success=False),
    ]
    found = analyse_cost_index(rows, seed=SEED)
    one = found.cell("refund", "a")
    assert (one.success_rate.value, one.success_rate.low, one.success_rate.high) == ("2/3", "0", "1")
    cost = one.cost_per_outcome
    assert (cost.value, cost.low, cost.high) == ("7/2", "3/2", "unbounded")  # 7 / 2; 6 / 4; 8 / 0
    assert found.totals[0].cost_per_outcome.value == "7/2"


def test_an_optimizer_matrix_at_the_edge_of_its_gates() -> None:
    """Adaptive verifies 27 of 30 for 21 dollars, the frontier 28 for 30: 27 x 20 >= 19 x 28, and 21 is 70 % of 30."""
    lost = {"adaptive": {(7, 1), (8, 1), (9, 1)}, "always-frontier": {(7, 1), (8, 1)}}
    found = analyse_optimizer_matrix(matrix({"adaptive": "0.7"}, lost))
    assert {one.name: one.passed for one in found.funded.conditions} == {
        "absolute-completion": True, "valid-frontier": True, "relative-completion": True, "total-cost": True,
    }  # fmt: skip
    assert Fraction(27, 28) >= Fraction(95, 100) > Fraction(26, 28)
    dearer = analyse_optimizer_matrix(matrix({"adaptive": "0.7001"}, lost))
    assert [one.name for one in dearer.funded.conditions if not one.passed] == ["total-cost"]
    fewer = analyse_optimizer_matrix(matrix({"adaptive": "0.7"}, {**lost, "adaptive": lost["adaptive"] | {(6, 1)}}))
    assert [one.name for one in fewer.funded.conditions if not one.passed] == ["relative-completion"]
    assert [one.policy for one in found.policies] == list(POLICIES)
