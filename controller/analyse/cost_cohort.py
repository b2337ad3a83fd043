"""The rows of a dataset as the cells of a cost index: every predeclared instance under every stack, also without a row.

An outcome is the row's `stratum`, a stack its `arm`. Money is made exact here, converted by the frozen rules, and kept
apart by currency where no rule says how to combine it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from controller.analyse.charges import Amount, amounts_of, counted_twice
from controller.analyse.dataset import mixtures, refuse
from controller.domain.dataset import LogicalRunRow
from controller.domain.provider_report import Figure
from controller.errors import InvalidInput
from controller.protocols.cost_index.plan import COUNTED, CostIndexPlan, Instance, fit_to_label
from controller.protocols.cost_index.rules import total_spend

CASES_MAX: Final = 1_000_000  # every instance under every stack; few rows of many ids can name billions
CELLS_MAX: Final = 10_000  # each is a kilobyte of the result; the methodology asks 60
Key = tuple[str, int]  # task and replicate: one instance


@dataclass(frozen=True, slots=True)
class Case:
    """One predeclared task instance under one stack. `row` and `line` are None when the dataset has no row for it."""

    key: Key
    cluster: str
    row: LogicalRunRow | None
    line: int | None
    verified: bool | None  # None: unknown
    amounts: tuple[Amount, ...]
    spend: Fraction | None  # within the boundary; None when a part is unknown. Of one currency if the cell has one


@dataclass(frozen=True)
class StackCases:
    """The cases of one cell, in the order of the outcome's instances."""

    outcome: str
    stack: str
    cases: tuple[Case, ...]
    counted: tuple[str, ...]

    @cached_property
    def successes(self) -> int:
        return sum(case.verified is True for case in self.cases)

    @cached_property
    def unknown(self) -> int:
        return sum(case.verified is None for case in self.cases)

    @cached_property
    def currencies(self) -> frozenset[str]:
        """Of every amount within the boundary."""
        return frozenset(one.currency for case in self.cases for one in case.amounts if self.counts(one))

    @property
    def currency(self) -> str | None:
        """The one currency within the boundary; None when there are several or none."""
        return next(iter(self.currencies)) if len(self.currencies) == 1 else None

    def counts(self, amount: Amount) -> bool:
        """True within the boundary."""
        return amount.kind in self.counted

    @cached_property
    def spend(self) -> Fraction | None:
        """None when a part is unknown, or when the parts are of several currencies."""
        return None if len(self.currencies) > 1 else total_spend([case.spend for case in self.cases])

    @property
    def settled_spend(self) -> Fraction | None:
        """What is settled of it: less than the spend when a part is unknown; None in several currencies."""
        if len(self.currencies) > 1:
            return None
        parts = (one.settled for case in self.cases for one in case.amounts if self.counts(one))
        return sum(parts, Fraction(0))


@dataclass(frozen=True)
class OutcomeCases:
    """One outcome: its instances by cluster, clusters in byte order of their ids, and the cells of all stacks."""

    outcome: str
    instances: tuple[Key, ...]
    cluster_of: Mapping[Key, str]
    stacks: Mapping[str, StackCases]

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.cluster_of.values()), key=str.encode))

    @property
    def independent(self) -> bool:
        """True when every instance is a cluster of its own: the one place that decides it."""
        return len(self.clusters) == len(self.instances)


def check_cost_rows(rows: Sequence[LogicalRunRow], plan: CostIndexPlan | None, *, name: str) -> None:
    """Raises InvalidInput listing, by line, every row that contradicts the plan or another row."""
    refuse([*_row_problems(rows, plan, name), *counted_twice(rows, name), *mixtures(rows, name)])


def _row_problems(rows: Sequence[LogicalRunRow], plan: CostIndexPlan | None, name: str) -> Iterator[str]:
    seen: dict[tuple[str, str, int], int] = {}
    planned = {} if plan is None else {one.task: (entry.id, one) for entry in plan.outcomes for one in entry.instances}
    for number, row in enumerate(rows, start=1):
        where = f"{name}:{number}"
        key = (row.arm, row.task, row.replicate)
        if key in seen:
            yield f"{where}: {row.task}.{row.arm}.r{row.replicate} appears twice, first on line {seen[key]}"
        seen.setdefault(key, number)
        if row.challenge is not None:
            yield f"{where}: challenge: a planted {row.challenge} case is no run of this protocol"
        if not fit_to_label(row.stratum):
            yield f"{where}: stratum: an outcome's name is 1 to 80 printable ASCII characters, for it names the draws"
        if plan is not None:
            yield from (f"{where}: {fault}" for fault in _against_plan(row, plan, planned))


def _against_plan(
    row: LogicalRunRow, plan: CostIndexPlan, planned: Mapping[str, tuple[str, Instance]]
) -> Iterator[str]:
    if row.arm not in plan.stacks:
        yield f"arm: {row.arm!r} is not in the plan"
    if row.task not in planned:
        yield f"task: {row.task!r} is not in the plan"
        return
    outcome, instance = planned[row.task]
    if row.stratum != outcome:
        yield f"stratum: {row.stratum!r}, but the plan has the task in outcome {outcome!r}"
    if row.cluster != instance.cluster:
        yield f"cluster: {row.cluster!r}, but the plan has the task in {instance.cluster!r}"
    if row.replicate > instance.replicates:
        yield f"replicate: {row.replicate} exceeds the planned {instance.replicates}"


def cohorts_of(rows: Sequence[LogicalRunRow], plan: CostIndexPlan | None) -> tuple[OutcomeCases, ...]:
    """The checked rows as outcomes and stacks, both in byte order. Without a plan, whatever is named is predeclared.

    Raises InvalidInput for more cases than can be analysed.
    """
    declared: dict[str, dict[Key, str]] = {}
    if plan is not None:
        for entry in plan.outcomes:
            for one in entry.instances:
                for replicate in range(1, one.replicates + 1):
                    declared.setdefault(entry.id, {})[one.task, replicate] = one.cluster
    else:
        for row in rows:
            declared.setdefault(row.stratum, {})[row.task, row.replicate] = row.cluster
    stacks = sorted(set(plan.stacks) if plan else {row.arm for row in rows}, key=str.encode)
    cases = len(stacks) * sum(len(instances) for instances in declared.values())
    if cases > CASES_MAX:
        raise InvalidInput(f"{len(rows):,} rows predeclare {cases:,} cases; at most {CASES_MAX:,} are analysed")
    cells = len(stacks) * len(declared)
    if cells > CELLS_MAX:
        sizes = f"{len(declared):,} outcomes and {len(stacks):,} stacks"
        raise InvalidInput(f"{sizes} make {cells:,} cells; at most {CELLS_MAX:,} are analysed")
    by_key = {(row.arm, row.task, row.replicate): (line, row) for line, row in enumerate(rows, start=1)}
    counted = plan.counted if plan else COUNTED
    found = []
    for outcome in sorted(declared, key=str.encode):
        cluster_of = declared[outcome]
        instances = tuple(sorted(cluster_of, key=lambda key: (key[0].encode(), key[1])))
        by_stack = {
            stack: StackCases(
                outcome,
                stack,
                tuple(_case(key, cluster_of[key], by_key.get((stack, *key)), plan) for key in instances),
                counted,
            )
            for stack in stacks
        }
        found.append(OutcomeCases(outcome, instances, cluster_of, by_stack))
    return tuple(found)


def _case(key: Key, cluster: str, found: tuple[int, LogicalRunRow] | None, plan: CostIndexPlan | None) -> Case:
    if found is None:
        return Case(key, cluster, None, None, None, (), None)
    line, row = found
    amounts, counted = tuple(_converted(row, plan)), plan.counted if plan else COUNTED
    spend = total_spend([amount.value for amount in amounts if amount.kind in counted])
    return Case(key, cluster, row, line, _verified(row), amounts, spend)


def _verified(row: LogicalRunRow) -> bool | None:
    """A success whose model or receipt was refuted is no evidence of this stack, so its outcome is unknown."""
    if row.outcome == "success":
        refuted = row.proofs is not None and False in (row.proofs.observed_model, row.proofs.receipt)
        return None if refuted else True
    return False if row.outcome == "failure" else None


def _converted(row: LogicalRunRow, plan: CostIndexPlan | None) -> Iterator[Amount]:
    """Every charge, in the plan's currency where a frozen rule says so."""
    rates = {} if plan is None else {rule.from_currency: rule.exact for rule in plan.conversions}
    for one in amounts_of(row):
        if plan is None or one.currency not in rates:
            yield one
        else:
            rate = rates[one.currency]
            yield Amount(one.kind, plan.currency, None if one.value is None else one.value * rate, one.settled * rate)


def is_estimated(case: Case) -> bool:
    return case.row is not None and case.row.figure is Figure.ESTIMATED
