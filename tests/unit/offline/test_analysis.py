"""The analysis, recomputed by a second implementation: the same bytes, whatever the dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse import PlanInputs, analyse_bytes
from controller.domain.dataset import LogicalRunRow
from controller.domain.outcome import EndKind
from controller.offline.analysis import analysis_bytes
from controller.offline.harness_round import HarnessRound
from controller.offline.plan import Arm, Caps, Plan, Rubric, SandboxLimits, SpendLimits
from controller.offline.rates import Card
from controller.offline.stops import StopRules
from tests.world.rounds import SEED, attempt, jsonl, realistic, run

Rows = list[LogicalRunRow]
TASKS = [f"t{number}" for number in range(6)]


def both(rows: Sequence[LogicalRunRow], *, resamples: int = 1_000, own: Sequence[str] = ()) -> tuple[bytes, bytes]:
    """The bytes of either implementation."""
    arms, tasks = sorted({row.arm for row in rows}), sorted({row.task for row in rows})
    pairs = tuple(combinations(arms, 2))
    inputs = PlanInputs(
        seed=SEED,
        comparisons=pairs,
        arms=tuple(arms),
        own_arms=tuple(own),
        tasks=tuple(tasks),
        replicates=max(row.replicate for row in rows),
        resamples=resamples,
    )
    plan = Plan(
        protocol="harness-round",
        round_id=rows[0].round_id,
        kind=rows[0].kind,
        seed=SEED,
        replicates=inputs.replicates,
        corpus_root="",
        tasks=(),
        arms=tuple(Arm(arm, "lane", arm in own) for arm in arms),
        lanes=(),
        rate_card=Card("none", ()),
        rate_card_digest="",
        network_policy="",
        network_policy_digest="",
        images={},
        envelope=Caps(1, 1, 1, "1", 1),
        rubric=Rubric(()),
        sandbox_limits=SandboxLimits(),
        spend_limits=SpendLimits(),
        stop_rules=StopRules((), 5, 5, 40),
        schedule=(),
    )
    frozen = HarnessRound(
        generator="shake128-mulshift64/v1",
        resamples=resamples,
        level_percent=95,
        intervals="holm-compatible",
        quantiles="nearest-rank",
        comparisons=pairs,
        margin_points=3,
        saving_percent=10,
    )
    dicts = [json.loads(row.model_dump_json()) for row in rows]
    return analysis_bytes(plan, frozen, rows[0].manifest_digest, dicts), analyse_bytes(jsonl(rows), inputs)[1]


def grid(
    arms: Sequence[str], make: Callable[[str, str, int], LogicalRunRow], tasks: Sequence[str] = TASKS, repeats: int = 3
) -> Rows:
    return [make(task, arm, repeat) for task in tasks for arm in arms for repeat in range(1, repeats + 1)]


def priced(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """Equal success; the first arm costs less."""
    return run(
        task, arm, repeat, usd={"a": "0.05", "b": f"0.0{7 + repeat % 2}"}[arm], wall_ms=1_000 * int(task[1:]) + 9
    )


def timed(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """Equal success and cost; the second arm is faster."""
    return run(task, arm, repeat, wall_ms=(90_000 if arm == "a" else 50_000) + 100 * repeat)


def faster_than_a_limit(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """Equal success and cost; most runs of the slower arm were cut short, so the saving is a lower bound."""
    if arm == "a":
        return run(task, arm, repeat, success=repeat == 1, wall_ms=9_000 + repeat)
    if repeat == 1:
        return run(task, arm, repeat, wall_ms=1_700_000)
    late = attempt(1, end=EndKind.TIMEOUT, wall_ms=1_800_000, verified=None)
    return run(task, arm, repeat, success=False, attempts=[late])


def cut_short(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """Half the runs of one arm end at the time limit."""
    if arm == "b" and repeat % 2:
        late = attempt(1, end=EndKind.TIMEOUT, wall_ms=1_800_000, verified=None)
        return run(task, arm, repeat, success=False, attempts=[late])
    return run(task, arm, repeat, success=repeat == 1)


def unknown(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """Some runs are invalid, some never happened."""
    if arm == "b" and (task, repeat) == ("t1", 2):
        return run(task, arm, repeat, outcome="invalid", attempts=[attempt(1, usd=None)])
    if arm == "c" and task == "t2":
        return run(task, arm, repeat, outcome="missing", attempts=[])
    return run(task, arm, repeat, success=repeat == 2)


def without_success(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """One arm never succeeds, another rarely."""
    return run(task, arm, repeat, success=arm == "b" and task == "t3")


def free(task: str, arm: str, repeat: int) -> LogicalRunRow:
    return run(task, arm, repeat, usd="0" if arm == "a" or task == "t1" else "0.031", success=task != "t4")


def sealed(task: str, arm: str, repeat: int) -> LogicalRunRow:
    return run(
        task, arm, repeat, success=(arm == "a") != (task == "t0"), visibility="sealed" if task < "t4" else "public"
    )


def dearer_and_hardly_better(task: str, arm: str, repeat: int) -> LogicalRunRow:
    """One arm costs a third of the other and loses on one task: too little to say so, too much for the margin."""
    return run(task, arm, repeat, success=arm == "b" or task != "t0", usd={"a": "0.02", "b": "0.06"}[arm])


def clear_cut(task: str, arm: str, repeat: int) -> LogicalRunRow:
    return run(task, arm, repeat, success=arm == "b" or (arm == "c" and repeat == 1))


CASES: dict[str, tuple[Rows, Sequence[str]]] = {
    "realistic": (realistic(TASKS, ["a", "b", "c"], seed=3), ()),
    "many tasks": (realistic([f"t{number}" for number in range(55)], ["a", "b"], seed=4), ("a",)),
    "one arm": (realistic(TASKS, ["a"]), ()),
    "one task": (realistic(["t0"], ["a", "b"]), ()),
    "one repeat": (realistic(TASKS, ["a", "b"], replicates=1), ()),
    "twelve arms": (realistic(TASKS, [f"arm-{number:02}" for number in range(12)], seed=9), ("arm-00",)),
    "cost decides": (grid("ab", priced), ("b",)),
    "time decides": (grid("ab", timed), ()),
    "faster than a limit": (grid("ab", faster_than_a_limit), ()),
    "cut short": (grid("ab", cut_short), ()),
    "unknown": (grid("abc", unknown), ()),
    "no success": (grid("abc", without_success), ()),
    "free": (grid("ab", free), ()),
    "sealed": (grid("ab", sealed), ("b",)),
    "no tie": (grid("ab", dearer_and_hardly_better), ("a",)),
    "our arms lose": (grid("abc", clear_cut), ("a", "c")),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_are_equal(name: str) -> None:
    rows, own = CASES[name]
    ours, theirs = both(rows, own=own)
    assert json.loads(ours) == json.loads(theirs)
    assert ours == theirs


def test_the_cases_reach_every_decision() -> None:
    """Otherwise equal bytes would say little."""
    rules, statuses = set(), set()
    for rows, own in CASES.values():
        for pair in json.loads(both(rows, own=own, resamples=400)[0])["pairs"]:
            rules.add(pair["decision"]["rule"])
            statuses |= {finding["status"] for finding in pair["decision"]["findings"]}
    assert rules == {"success", "cost", "time", "none"}
    assert statuses == {"met", "tie", "no tie", "not qualified", "not reached"}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    tasks=st.integers(1, 7),
    arms=st.integers(1, 4),
    replicates=st.integers(1, 4),
    resamples=st.integers(100, 400),
)
def test_the_bytes_are_equal_for_any_round(seed: int, tasks: int, arms: int, replicates: int, resamples: int) -> None:
    rows = realistic([f"t{number}" for number in range(tasks)], list("abcd"[:arms]), seed=seed, replicates=replicates)
    ours, theirs = both(rows, resamples=resamples)
    assert ours == theirs
