"""Matrices of the frozen shape: 3 repositories, 10 scenarios in 6 categories, 4 policies, 3 repetitions, 4 holdouts."""

from __future__ import annotations

from typing import Any, Final

from controller.domain.dataset import LogicalRunRow, Proofs
from controller.protocols.optimizer_matrix.plan import OptimizerPlan, Scenario
from tests.world.rounds import attempt, run

POLICIES: Final = ("adaptive", "always-frontier", "always-small", "prompt-only")
CATEGORIES: Final = ("bugfix", "docs", "feature", "perf", "refactor", "tests")
PROVEN: Final = Proofs(observed_model=True, receipt=True)

Cells = dict[str, set[tuple[int, int]]]  # by policy: scenario and repetition of the runs that are not verified


def scenario(place: int) -> Scenario:
    """Scenarios 0 to 3 are held out; categories 0 to 3 have two scenarios each, 4 and 5 one."""
    return Scenario(id=f"s{place}", repository=f"repo-{place % 3}", category=CATEGORIES[place % 6], holdout=place < 4)


def plan(**changes: Any) -> OptimizerPlan:
    return OptimizerPlan(
        **{"scenarios": tuple(scenario(p) for p in range(10)), "policies": POLICIES, "repetitions": 3, **changes}
    )


def policy_run(policy: str, place: int, repetition: int, **changes: Any) -> LogicalRunRow:
    """One measured and proven run of a scenario; verified for one dollar unless told otherwise."""
    frozen = scenario(place)
    usd, success = changes.pop("usd", "1"), changes.pop("success", True)
    tried = changes.pop("attempts", [attempt(usd=usd, verified=success)])
    row = run(frozen.id, policy, repetition, success=success, attempts=tried, outcome=changes.pop("outcome", None))
    return row.model_copy(
        update={
            "schema_version": "fairtrial.dataset/2",
            "kind": "measured",
            "cluster": frozen.repository,
            "stratum": frozen.category,
            "visibility": "holdout" if frozen.holdout else "public",
            "proofs": PROVEN,
            **changes,
        }
    )


def matrix(costs: dict[str, str] | None = None, lost: Cells | None = None) -> list[LogicalRunRow]:
    """All 120 runs: what a run of each policy costs, and which runs fail."""
    price, failing = costs or {}, lost or {}
    return [
        policy_run(
            policy,
            place,
            repetition,
            usd=price.get(policy, "1"),
            success=(place, repetition) not in failing.get(policy, set()),
        )
        for policy in POLICIES
        for place in range(10)
        for repetition in (1, 2, 3)
    ]


def planted(kind: str, count: int) -> list[LogicalRunRow]:
    """Planted cases of one kind, none of which passes."""
    return [
        policy_run("adaptive", place % 10, 1 + place // 10, success=False, challenge=kind) for place in range(count)
    ]


def all_planted(each: int = 30) -> list[LogicalRunRow]:
    return [row for kind in ("tamper", "incomplete", "substitution", "crash") for row in planted(kind, each)]
