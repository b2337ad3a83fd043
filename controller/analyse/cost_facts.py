"""What the qualification gates of a cost index look at, each fault with the row that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from controller.analyse.cost_cohort import Case, OutcomeCases, StackCases
from controller.domain.dataset import LogicalRunRow
from controller.protocols.cost_index.plan import CostIndexPlan
from controller.protocols.cost_index.rules import Facts


def facts_of(
    rows: Sequence[LogicalRunRow],
    outcomes: Sequence[OutcomeCases],
    plan: CostIndexPlan | None,
    plan_digest: str | None,
    *,
    name: str,
) -> Facts:
    """The facts of the checked rows; `plan_digest` is of the plan's bytes, when they are at hand."""
    cells = [cell for outcome in outcomes for cell in outcome.stacks.values()]
    currencies = sorted({currency for cell in cells for currency in cell.currencies})
    wanted = plan.currency if plan is not None else currencies[0] if len(currencies) == 1 else None
    return Facts(
        outcomes=len(outcomes),
        stacks=len(outcomes[0].stacks),
        frozen_cells=None if plan is None else len(plan.outcomes) * len(plan.stacks),
        missing_cells=[
            f"{cell.outcome} / {cell.stack}" for cell in cells if all(case.row is None for case in cell.cases)
        ],
        missing_instances=_named(cells, name, lambda cell, case: case.row is None),
        unknown_outcomes=_named(cells, name, lambda cell, case: case.verified is None),
        unknown_spend=_named(cells, name, lambda cell, case: case.spend is None),
        currencies=currencies,
        unconverted=_named(cells, name, lambda cell, case: any(each != wanted for each in _currencies(cell, case))),
        rehearsed=rows[0].kind == "rehearsal",
        plan_digests=None if plan_digest is None else (plan_digest, rows[0].manifest_digest),
        conversions=tuple(_conversions(plan)),
    )


def _named(cells: Sequence[StackCases], name: str, wrong: Callable[[StackCases, Case], bool]) -> list[str]:
    """The cases of which this holds, those with a row first and in the order of the file."""
    found = [
        (case.line is None, case.line or 0, f"{case.key[0]}.{cell.stack}.r{case.key[1]}")
        for cell in cells
        for case in cell.cases
        if wrong(cell, case)
    ]
    return [f"{run} has no row" if absent else f"{name}:{line} {run}" for absent, line, run in sorted(found)]


def _currencies(cell: StackCases, case: Case) -> frozenset[str]:
    return frozenset(amount.currency for amount in case.amounts if cell.counts(amount))


def _conversions(plan: CostIndexPlan | None) -> Iterator[str]:
    for rule in plan.conversions if plan else ():
        yield f"1 {rule.from_currency} = {rule.rate} {plan.currency if plan else ''} ({rule.source}, {rule.dated})"
