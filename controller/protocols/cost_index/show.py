"""Exact values for readers' eyes, and the whole result as text. Rounded once, at the very end."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from controller.domain.exact import Exact, decimal_text
from controller.domain.words import numbered
from controller.protocols.cost_index.estimates import CostIndexAnalysis, Estimate

NOT_APPLICABLE = "n/a"
UNDEFINED = "undefined: no verified outcome"


def money_shown(value: Exact | None, currency: str | None) -> str:
    """`USD 0.0521`, `USD 12.50`, `unbounded`, or `n/a`."""
    if value is None or currency is None:
        return NOT_APPLICABLE
    if not isinstance(value, Fraction):
        return "unbounded"
    return f"{currency} {decimal_text(value, 4 if value < 1 else 2)}"


def share_shown(value: Exact | Decimal | None) -> str:
    """`66.7 %`, or `n/a`."""
    return NOT_APPLICABLE if value is None else f"{decimal_text(100 * Fraction(value), 1)} %"


def seconds_shown(value: Fraction | None) -> str:
    """`12.3 s`, or `n/a`."""
    return NOT_APPLICABLE if value is None else f"{decimal_text(value / 1000, 1)} s"


def describe(found: CostIndexAnalysis) -> str:
    """The conclusion, every cell, the totals, the gates and what to keep in mind."""
    lines = [found.conclusion, ""]
    for cell in found.cells:
        lines.append(
            f"{cell.outcome} / {cell.stack}: {cell.successes} of {cell.instances} verified, {cell.unknown} unknown, "
            f"{numbered(cell.attempts, 'attempt')}; rate {_with_interval(cell.success_rate)}; "
            f"spend {cell.spend_shown}; "
            f"cost per verified outcome {_with_interval(cell.cost_per_outcome)}; latency {cell.latency.verified.shown}"
        )
    lines += ["", "All outcomes"]
    for total in found.totals:
        lines.append(
            f"{total.stack}: {total.successes} of {total.instances} verified; "
            f"rate {_with_interval(total.success_rate)}; spend {total.spend_shown}; "
            f"cost per verified outcome {_with_interval(total.cost_per_outcome)}"
        )
    lines.append("")
    for gate in found.gates:
        lines.append(f"{'ok ' if gate.passed else 'NO '} {gate.name}: {gate.detail}")
        lines += [f"      {run}" for run in found.faults.get(gate.name, ())]
    lines += ["", *(f"- {text}" for text in (*found.limitations, *found.notes))]
    return "\n".join(lines)


def _with_interval(estimate: Estimate) -> str:
    if estimate.method is None:
        return f"{estimate.value_shown} (no interval: {estimate.reason})" if estimate.reason else estimate.value_shown
    return f"{estimate.value_shown} ({estimate.low_shown} to {estimate.high_shown})"
