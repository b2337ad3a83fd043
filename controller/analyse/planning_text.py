"""A plan's figures as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from controller.analyse.planning import GatePlanning, IndexPlanning, Planning, RoundPlanning
from controller.domain.exact import decimal_text, exact_from_text
from controller.domain.words import numbered


def planning_text(found: Planning) -> str:
    """One screen per protocol."""
    if isinstance(found, RoundPlanning):
        lines = [*_round(found)]
    elif isinstance(found, GatePlanning):
        lines = [*_gates(found)]
    else:
        lines = [*_index(found)]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)])


def _round(found: RoundPlanning) -> Iterator[str]:
    assumed = found.assumptions
    yield (
        f"{assumed.tasks:,} tasks, {assumed.arms} arms, {numbered(assumed.repeats, 'repeat')}: "
        f"{found.logical_runs:,} logical runs, {numbered(found.comparisons, 'comparison')}; "
        f"Holm's first step: p <= {found.first_step_level} (k = {found.first_step_k})"
    )
    if found.pilot is not None:
        yield f"spreads from {found.pilot.dataset}: {numbered(found.pilot.pairs, 'pair')} on {found.pilot.tasks} tasks"
    yield ""
    yield "success: what 80 % of rounds tell apart, and what the -3 point bound needs"
    yield (
        f"  {'spread of per-task differences':34} {'level':16} {'points':>7} {'tasks for -3':>13} {'lead needed':>12} "
        f"{'P(tie in bound)':>16}"
    )
    for row in found.sensitivities:
        yield (
            f"  {row.scenario:34} {row.level:16} {row.detectable_points:>7} {row.tasks_for_margin!s:>13} "
            f"{row.lead_needed_points:>12} {_percent(row.tie_within_margin_if_equal):>16}"
        )
    yield ""
    yield "tasks that put a ratio's interval below 1 in 80 % of rounds"
    for saving in found.savings:
        yield f"  {saving.criterion:5} {saving.saving_percent:>3} % lower  {saving.level:16} {saving.tasks_needed!s:>9}"
    yield ""
    yield "how probable a tie-break is with the planned tasks"
    for fire in found.tie_breaks:
        yield (
            f"  {fire.scenario:34} {fire.level:16} {fire.criterion:5} {fire.saving_percent:>3} % lower "
            f"{_percent(fire.tie_break_fires):>8}"
        )
    yield ""


def _gates(found: GatePlanning) -> Iterator[str]:
    assumed = found.assumptions
    yield f"{assumed.policies} policies, {numbered(assumed.cells, 'cell')} each"
    for row in found.gates:
        yield (
            f"  true success {row.success_rate}: passes 80 % with probability {_percent(row.passes_80_percent)}, "
            f"95 % of an equal policy with {_percent(row.passes_95_percent_of_equal)}"
        )
    yield (
        f"no false pass at all would bound their rate by {_percent(found.false_pass_upper_if_none)}, "
        f"of one policy by {_percent(found.false_pass_upper_if_none_of_one_policy)}"
    )


def _index(found: IndexPlanning) -> Iterator[str]:
    yield f"{found.assumptions.instances} instances: the probability that a cost per success has no upper end"
    for row in found.cost_per_success:
        yield f"  true success {row.success_rate}: {_percent(row.upper_end_unbounded)}"


def _percent(share: str) -> str:
    value = exact_from_text(share)
    return f"{decimal_text(100 * value, 1)} %" if isinstance(value, Fraction) else share
