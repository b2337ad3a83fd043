"""The rows of a dataset as the frozen matrix: policy x scenario x repetition, each exactly once.

A policy is the row's `arm`, a scenario its `task`, a repository its `cluster`, a category its `stratum`; held-out
scenarios have the visibility `holdout`. Rows with a `challenge` are planted cases and stand outside the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controller.analyse.charges import amounts_of, counted_twice
from controller.analyse.dataset import absent, mixtures, refuse, run_name
from controller.domain.dataset import LogicalRunRow
from controller.protocols.cost_index.rules import total_spend
from controller.protocols.optimizer_matrix.plan import POLICIES_MAX, OptimizerPlan, Roles, Scenario

Key = tuple[str, str, int]  # policy, scenario, repetition: the order of the matrix


@dataclass(frozen=True, slots=True)
class MatrixRun:
    """One run of the matrix. `cost` is None when any part of any attempt is unknown."""

    row: LogicalRunRow
    line: int
    verified: bool
    cost: Fraction | None
    known_cost: Fraction

    @property
    def held_out(self) -> bool:
        return self.row.visibility == "holdout"

    @property
    def key(self) -> Key:
        return self.row.arm, self.row.task, self.row.replicate


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole matrix in the order of its keys, and the planted cases in the order of the file."""

    plan: OptimizerPlan
    runs: tuple[MatrixRun, ...]
    planted: tuple[MatrixRun, ...]
    currency: str

    def of(self, policy: str) -> tuple[MatrixRun, ...]:
        return tuple(run for run in self.runs if run.row.arm == policy)


def is_verified(row: LogicalRunRow) -> bool:
    """All four: the verifier passed, the outcome says so, the observed model is proven, the receipt is verified."""
    passed = row.scored is not None and row.scored.verified is True
    proven = row.proofs is not None and row.proofs.observed_model is True and row.proofs.receipt is True
    return row.outcome == "success" and passed and proven


def matrix_of(rows: Sequence[LogicalRunRow], plan: OptimizerPlan | None, *, name: str) -> Matrix:
    """The checked matrix. Without a plan, whatever the rows name counts as predeclared.

    Raises InvalidInput listing every missing, duplicate or injected run, and every mixture, by line.
    """
    chosen = plan or _plan_of(rows)
    refuse([*_problems(rows, chosen, name), *counted_twice(rows, name), *mixtures(rows, name)])
    numbered = list(enumerate(rows, start=1))
    runs = [_run(row, line) for line, row in numbered if row.challenge is None]
    return Matrix(
        plan=chosen,
        runs=tuple(sorted(runs, key=lambda run: run.key)),
        planted=tuple(_run(row, line) for line, row in numbered if row.challenge is not None),
        currency=rows[0].currency,
    )


def _run(row: LogicalRunRow, line: int) -> MatrixRun:
    amounts = tuple(amounts_of(row))
    return MatrixRun(
        row=row,
        line=line,
        verified=is_verified(row),
        cost=total_spend([amount.value for amount in amounts]),
        known_cost=sum((amount.settled for amount in amounts), Fraction(0)),
    )


def _plan_of(rows: Sequence[LogicalRunRow]) -> OptimizerPlan:
    """What the rows name, with the policies' usual names. Raises InvalidInput when a role is absent, or too many."""
    runs = [row for row in rows if row.challenge is None]
    policies = tuple(sorted({row.arm for row in runs}))
    roles = Roles()
    wanted = (roles.adaptive, roles.frontier, roles.prompt_only)
    refuse(
        [f"arm: no run of the policy {one!r}; a frozen plan may name another" for one in wanted if one not in policies]
    )
    if len(policies) > POLICIES_MAX:
        refuse([f"arm: {len(policies):,} policies; at most {POLICIES_MAX} are compared"])
    first: dict[str, LogicalRunRow] = {}
    for row in runs:
        first.setdefault(row.task, row)
    return OptimizerPlan(
        scenarios=tuple(
            Scenario(id=task, repository=row.cluster, category=row.stratum, holdout=row.visibility == "holdout")
            for task, row in sorted(first.items())
        ),
        policies=policies,
        repetitions=min(100, max(row.replicate for row in runs)),
    )


def _problems(rows: Sequence[LogicalRunRow], plan: OptimizerPlan, name: str) -> Iterator[str]:
    scenarios, policies = {scenario.id: scenario for scenario in plan.scenarios}, set(plan.policies)
    seen: dict[tuple[str | None, Key], int] = {}  # keys as scenario, policy, repetition: the order of a run's name
    for number, row in enumerate(rows, start=1):
        where = f"{name}:{number}"
        key = (row.task, row.arm, row.replicate)
        if (row.challenge, key) in seen:
            yield f"{where}: {run_name(key)} appears twice, first on line {seen[row.challenge, key]}"
        seen.setdefault((row.challenge, key), number)
        if row.arm not in policies:
            yield f"{where}: arm: {row.arm!r} is not a policy of the plan"
        if row.currency != rows[0].currency or any(one.currency != rows[0].currency for one in row.charges):
            yield f"{where}: currency: differs from {rows[0].currency} on line 1; currencies are not combined"
        if row.challenge is None:
            yield from (f"{where}: {fault}" for fault in _injected(row, plan, scenarios))
    present = {key for challenge, key in seen if challenge is None}
    told = "is missing, so there is no report"
    yield from absent(present, tuple(scenarios), plan.policies, plan.repetitions, f"{name}: ", told)


def _injected(row: LogicalRunRow, plan: OptimizerPlan, scenarios: dict[str, Scenario]) -> Iterator[str]:
    """How a run departs from what was frozen for it."""
    if row.outcome == "missing":
        yield "outcome: the run is missing, so there is no report"
    if row.replicate > plan.repetitions:
        yield f"replicate: {row.replicate} exceeds the planned {plan.repetitions}"
    scenario = scenarios.get(row.task)
    if scenario is None:
        yield f"task: {row.task!r} is not a scenario of the plan"
        return
    facts = (
        ("cluster", row.cluster, scenario.repository),
        ("stratum", row.stratum, scenario.category),
        (
            "visibility",
            "holdout" if row.visibility == "holdout" else "other",
            "holdout" if scenario.holdout else "other",
        ),
    )
    for field, found, frozen in facts:
        if found != frozen:
            yield f"{field}: {getattr(row, field)!r} is not what was frozen for the scenario"
