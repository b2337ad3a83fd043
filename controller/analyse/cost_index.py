"""cost-index: from the frozen dataset to cells, totals and gates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from controller.analyse.cost_cells import (
    Columns,
    cohort,
    columns,
    cost_per_verified,
    draw,
    joined,
    stratified,
    success_rate,
    unit_of,
)
from controller.analyse.cost_cohort import OutcomeCases, StackCases, check_cost_rows, cohorts_of, is_estimated
from controller.analyse.cost_facts import facts_of
from controller.analyse.cost_limits import NOTES, limitations
from controller.analyse.cost_times import ended_by, latency_of
from controller.analyse.draws import Resampler
from controller.analyse.percentile import ranks
from controller.analyse.plan import seed_of
from controller.domain.dataset import LogicalRunRow
from controller.domain.money import usd_to_text
from controller.domain.stream import GENERATOR
from controller.errors import InvalidInput
from controller.protocols.cost_index.estimates import Cell, CostIndexAnalysis, Spent, Total
from controller.protocols.cost_index.plan import COUNTED, METHODOLOGY, RESAMPLES, CostIndexPlan
from controller.protocols.cost_index.rules import faults_of, qualification
from controller.protocols.cost_index.show import money_shown

CLUSTERS_MAX: Final = 4_000  # of all outcomes: each takes 240 kB of draws, so 1 GB in all
RELEASE_NEEDS: Final = (
    "the frozen cohort and uncertainty protocol, confirmed",
    "actual human review of the exact report",
    "current publication authority",
)


def analyse_cost_index(
    rows: Sequence[LogicalRunRow],
    plan: CostIndexPlan | None = None,
    *,
    seed: str | None = None,
    plan_digest: str | None = None,
    resamples: int = RESAMPLES,
    name: str = "dataset.jsonl",
) -> CostIndexAnalysis:
    """Estimate every cell and every stack, and say what keeps the comparison from being qualified.

    The same rows in any order and the same plan give the same result on any machine. Raises InvalidInput naming every
    row that contradicts the plan or another row, and for a seed other than the plan's.
    """
    check_cost_rows(rows, plan, name=name)
    if plan is not None and seed not in (None, plan.seed):
        raise InvalidInput("seed: differs from the one that was frozen with the plan")
    chosen = plan.seed if plan else seed_of(rows, seed)
    outcomes = cohorts_of(rows, plan)
    clusters = sum(len(outcome.clusters) for outcome in outcomes)
    if clusters > CLUSTERS_MAX:
        raise InvalidInput(f"{name}: {clusters:,} clusters; at most {CLUSTERS_MAX:,} are resampled")
    drawn = [draw(outcome, chosen, resamples) for outcome in outcomes]
    cells, totals = _estimates(outcomes, drawn)
    facts = facts_of(rows, outcomes, plan, plan_digest, name=name)
    gates = qualification(facts)
    failed = [gate.name for gate in gates if not gate.passed]
    return CostIndexAnalysis(
        methodology=METHODOLOGY,
        round_id=rows[0].round_id,
        kind=rows[0].kind,
        manifest_digest=rows[0].manifest_digest,
        plan_digest=plan_digest,
        generator=GENERATOR,
        seed=chosen,
        resamples=resamples,
        ranks=ranks(resamples),
        currency=_one_currency([cell for outcome in outcomes for cell in outcome.stacks.values()]),
        counted=plan.counted if plan else COUNTED,
        exclusions=plan.exclusions if plan else (),
        cohorts=tuple(cohort(outcome, found) for outcome, found in zip(outcomes, drawn, strict=True)),
        cells=cells,
        totals=totals,
        gates=gates,
        faults=faults_of(facts),
        qualified=not failed,
        conclusion=_conclusion(rows[0].kind, failed),
        limitations=limitations(outcomes, cells, totals, resamples, planned=plan is not None),
        notes=NOTES,
        release_needs=RELEASE_NEEDS,
    )


def _conclusion(kind: str, failed: Sequence[str]) -> str:
    mark = "Rehearsal, not a measurement. " if kind == "rehearsal" else ""
    if failed:
        return f"{mark}This comparison is not qualified: {', '.join(failed)}."
    return f"{mark}This comparison is qualified. It names no winner: read each cell with its interval."


def _estimates(
    outcomes: Sequence[OutcomeCases], drawn: Sequence[Resampler | None]
) -> tuple[tuple[Cell, ...], tuple[Total, ...]]:
    by_stack: dict[str, list[tuple[StackCases, Columns]]] = {}
    cells = []
    units = {stack: unit_of([outcome.stacks[stack] for outcome in outcomes]) for stack in outcomes[0].stacks}
    for outcome, found in zip(outcomes, drawn, strict=True):
        for stack, cases in outcome.stacks.items():
            made = columns(cases, outcome.clusters, units[stack])
            by_stack.setdefault(stack, []).append((cases, made))
            cells.append(_cell(outcome, cases, made, found))
    whole = stratified(drawn)
    return tuple(cells), tuple(_total(stack, parts, whole) for stack, parts in by_stack.items())


def _cell(outcome: OutcomeCases, cell: StackCases, found: Columns, drawn: Resampler | None) -> Cell:
    rows = [case.row for case in cell.cases if case.row is not None]
    ends = [ended_by(case) for case in cell.cases]
    settled = cell.settled_spend
    return Cell(
        outcome=cell.outcome,
        stack=cell.stack,
        model=rows[0].model if rows else None,
        instances=len(cell.cases),
        clusters=len(outcome.clusters),
        attempts=sum(len(row.attempts) for row in rows),
        successes=cell.successes,
        failures=len(cell.cases) - cell.successes - cell.unknown,
        timeouts=ends.count("timeout"),
        unknown=cell.unknown,
        without_row=len(cell.cases) - len(rows),
        estimated_spend=sum(is_estimated(case) for case in cell.cases),
        spend=None if cell.spend is None else usd_to_text(cell.spend),
        settled_spend=None if settled is None else usd_to_text(settled),
        spend_shown=money_shown(cell.spend, cell.currency),
        currency=cell.currency,
        spent=_spent(cell),
        success_rate=success_rate(found, drawn, independent=outcome.independent),
        success_rate_if_unknown_succeeded=str(Fraction(cell.successes + cell.unknown, len(cell.cases))),
        cost_per_outcome=cost_per_verified(found, drawn, cell.currency, _unknown([cell])),
        latency=latency_of(cell),
        qualified=not _unknown([cell]),
    )


def _total(stack: str, parts: Sequence[tuple[StackCases, Columns]], drawn: Resampler | None) -> Total:
    cells = [cell for cell, _ in parts]
    found, unknown = joined([made for _, made in parts]), _unknown(cells)
    currency = _one_currency(cells)
    spend = None if found.spend is None or currency is None else sum(found.spend) * found.unit
    return Total(
        stack=stack,
        instances=sum(found.instances),
        attempts=sum(len(case.row.attempts) for cell in cells for case in cell.cases if case.row is not None),
        successes=sum(found.successes),
        failures=sum(case.verified is False for cell in cells for case in cell.cases),
        unknown=sum(cell.unknown for cell in cells),
        spend=None if spend is None else usd_to_text(spend),
        spend_shown=money_shown(spend, currency),
        currency=currency,
        success_rate=success_rate(found, drawn, independent=False),
        cost_per_outcome=cost_per_verified(found, drawn, currency, unknown),
    )


def _unknown(cells: Sequence[StackCases]) -> str:
    """Why these cells have no cost per verified outcome; empty when they have one."""
    cases = [case for cell in cells for case in cell.cases]
    outcomes = sum(case.verified is None for case in cases)
    spends = sum(case.spend is None for case in cases)
    reasons = []
    if outcomes:
        reasons.append(f"{outcomes} of {len(cases)} outcomes are unknown")
    if spends:
        reasons.append(f"the spend of {spends} of {len(cases)} instances is unknown, and unknown is not zero")
    if len({currency for cell in cells for currency in cell.currencies}) > 1:
        reasons.append("the spend is in several currencies, without a frozen conversion")
    return "; ".join(reasons)


def _one_currency(cells: Sequence[StackCases]) -> str | None:
    found = {currency for cell in cells for currency in cell.currencies}
    return found.pop() if len(found) == 1 else None


def _spent(cell: StackCases) -> tuple[Spent, ...]:
    """Every kind of charge, also those outside the boundary, which are disclosed and not counted."""
    amounts = [amount for case in cell.cases for amount in case.amounts]
    found = []
    for kind, currency in sorted({(amount.kind, amount.currency) for amount in amounts}):
        of_kind = [amount for amount in amounts if (amount.kind, amount.currency) == (kind, currency)]
        values = [amount.value for amount in of_kind if amount.value is not None]
        found.append(
            Spent(
                kind=kind,
                counted=kind in cell.counted,
                amount=usd_to_text(sum(values, Fraction(0))) if len(values) == len(of_kind) else None,
                settled=usd_to_text(sum((amount.settled for amount in of_kind), Fraction(0))),
                currency=currency,
            )
        )
    return tuple(found)
