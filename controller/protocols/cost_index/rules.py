"""The metric, and what qualifies a comparison. Pure and exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from controller.domain.exact import UNBOUNDED, Exact
from controller.domain.outcome import Gate
from controller.domain.words import numbered
from controller.protocols.cost_index.plan import OUTCOMES, STACKS

FAULTS_MAX: Final = 100  # of each gate, so that an analysis stays readable whatever it was given
NAMED_MAX: Final = 10  # a reader wants the first few; the rest is counted


def total_spend(spends: Sequence[Fraction | None]) -> Fraction | None:
    """The sum of every part; None as soon as one is unknown, which is not zero."""
    known = [spend for spend in spends if spend is not None]
    return sum(known, Fraction(0)) if len(known) == len(spends) else None


def cost_per_outcome(spend: Fraction, successes: int | Fraction) -> Exact:
    """Total settled spend over verified successes; without a success it is unbounded, whatever was spent."""
    return spend / successes if successes else UNBOUNDED


@dataclass(frozen=True, slots=True)
class Facts:
    """What the gates look at. Lists of runs name each by `file:line`; a gate tells their number only."""

    outcomes: int
    stacks: int
    frozen_cells: int | None  # of the plan, if one was given
    missing_cells: Sequence[str]
    missing_instances: Sequence[str]
    unknown_outcomes: Sequence[str]
    unknown_spend: Sequence[str]
    currencies: Sequence[str]
    unconverted: Sequence[str]
    rehearsed: bool
    plan_digests: tuple[str, str] | None = None  # of the plan that was given, and the one that the dataset names
    conversions: Sequence[str] = field(default=())


def qualification(facts: Facts) -> tuple[Gate, ...]:
    """Every condition of a qualified comparison, each with what failed it."""
    gates = [
        _cells(facts),
        _nothing(
            "same-instances",
            facts.missing_instances,
            "predeclared instance",
            "without a row",
            "every stack has a row for every predeclared instance",
        ),
        _nothing("known-outcomes", facts.unknown_outcomes, "outcome", "unknown", "every outcome is known"),
        _nothing(
            "settled-spend",
            facts.unknown_spend,
            "instance",
            "of unknown spend",
            "every charge within the boundary is settled",
        ),
        _currency(facts),
        Gate(
            name="measured",
            passed=not facts.rehearsed,
            detail="a rehearsal measures nothing" if facts.rehearsed else "the rows are measurements",
        ),
    ]
    if facts.plan_digests is not None:
        given, named = facts.plan_digests
        told = (
            "the dataset names this plan's digest" if given == named else f"the plan is {given}, the rows name {named}"
        )
        gates.append(Gate(name="frozen-plan", passed=given == named, detail=told))
    return tuple(gates)


def _cells(facts: Facts) -> Gate:
    wanted = facts.frozen_cells or OUTCOMES * STACKS
    missing = len(facts.missing_cells)
    present = facts.outcomes * facts.stacks - missing
    detail = f"{present} of {wanted} cells, {numbered(facts.outcomes, 'outcome')} and {numbered(facts.stacks, 'stack')}"
    sized = facts.frozen_cells is not None or (facts.outcomes, facts.stacks) == (OUTCOMES, STACKS)
    if not sized:
        detail += f"; without a frozen plan, {OUTCOMES} outcomes and {STACKS} stacks are asked"
    if missing:
        detail += f"; without a row: {named(facts.missing_cells)}"
    return Gate(name="all-cells", passed=sized and not missing, detail=detail)


def _currency(facts: Facts) -> Gate:
    if facts.unconverted:
        where = numbered(len(facts.unconverted), "instance")
        detail = f"{' and '.join(facts.currencies)} without a frozen conversion, in {where}"
        return Gate(name="one-currency", passed=False, detail=detail)
    told = ", ".join(facts.currencies) or "no charge names a currency"
    return Gate(name="one-currency", passed=bool(facts.currencies), detail="; ".join((told, *facts.conversions)))


def _nothing(name: str, wrong: Sequence[str], noun: str, fault: str, right: str) -> Gate:
    return Gate(name=name, passed=not wrong, detail=f"{numbered(len(wrong), noun)} {fault}" if wrong else right)


def faults_of(facts: Facts) -> dict[str, tuple[str, ...]]:
    """The runs that failed each gate, for whoever has the dataset: the first ones, and how many more."""
    found = {
        "same-instances": facts.missing_instances,
        "known-outcomes": facts.unknown_outcomes,
        "settled-spend": facts.unknown_spend,
        "one-currency": facts.unconverted,
    }
    return {
        gate: (*wrong[:FAULTS_MAX], *([f"and {len(wrong) - FAULTS_MAX:,} more"] if len(wrong) > FAULTS_MAX else []))
        for gate, wrong in found.items()
        if wrong
    }


def named(things: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(things) - NAMED_MAX
    return "; ".join([*things[:NAMED_MAX], *([f"and {more} more"] if more > 0 else [])])
