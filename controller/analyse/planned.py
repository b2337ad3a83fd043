"""The figures of a planned round, from its assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from controller.analyse import power
from controller.analyse.cost_limits import P95_CASES_MIN
from controller.analyse.holm import ALPHA, tail_rank
from controller.analyse.percentile import ranks
from controller.analyse.planning import (
    USUAL_SPREADS,
    Assumptions,
    Firing,
    GateAssumptions,
    GateChance,
    GatePlanning,
    IndexAssumptions,
    IndexPlanning,
    Level,
    Pilot,
    Planning,
    RoundAssumptions,
    RoundPlanning,
    Saving,
    Sensitivity,
    UnboundedChance,
)
from controller.analyse.rules import PAIRS_MANY, TASKS_FEW, TASKS_FEW_FOR_MANY_PAIRS
from controller.analyse.wilson import wilson
from controller.domain.exact import UNBOUNDED_TEXT, decimal_text
from controller.protocols.cost_index import plan as cost_index
from controller.protocols.harness_round.decision import MARGIN_POINTS, SAVING_PERCENT, TieBreak
from controller.protocols.harness_round.manifest import RESAMPLES

MARGIN: Final = MARGIN_POINTS / 100
SAVING: Final = Fraction(SAVING_PERCENT, 100)
_RARE: Final = 0.05


def planned(assumed: Assumptions, pilot: Pilot | None = None) -> Planning:
    """The answer in the vocabulary of the assumptions' protocol."""
    if isinstance(assumed, GateAssumptions):
        return _gates(assumed)
    if isinstance(assumed, IndexAssumptions):
        return _index(assumed)
    return _round(assumed, pilot)


def _round(assumed: RoundAssumptions, pilot: Pilot | None) -> RoundPlanning:
    pairs = assumed.arms * (assumed.arms - 1) // 2
    levels: dict[Level, Fraction] = {"unadjusted": ALPHA}
    if pairs > 1:
        levels["first Holm step"] = ALPHA / pairs
    spreads = _spreads(assumed)
    return RoundPlanning(
        assumptions=assumed,
        pilot=pilot,
        comparisons=pairs,
        logical_runs=assumed.tasks * assumed.arms * assumed.repeats,
        first_step_level=str(ALPHA / pairs),
        first_step_k=tail_rank(RESAMPLES, ALPHA / pairs),
        resamples=RESAMPLES,
        successful_tasks_needed=power.successful_tasks_min(assumed.tasks, RESAMPLES),
        successful_tasks_needed_at_first_step=power.successful_tasks_min(assumed.tasks, RESAMPLES, ALPHA / pairs),
        sensitivities=tuple(
            _sensitivity(name, spread, assumed.tasks, level, alpha)
            for name, spread in spreads.items()
            for level, alpha in levels.items()
        ),
        savings=tuple(_savings(assumed, levels)),
        tie_breaks=tuple(_firings(assumed, spreads, levels)),
        notes=tuple(_notes(assumed, pairs, spreads, pilot)),
    )


def _spreads(assumed: RoundAssumptions) -> dict[str, float]:
    """The spreads to plan for, by name."""
    found = {f"sd {spread:f}": float(spread) for spread in assumed.difference_sd}
    if assumed.success_rate is not None:
        name = f"equally hard tasks, success {decimal_text(100 * Fraction(assumed.success_rate), 0)} %"
        found[name] = power.spread_of_rate(float(assumed.success_rate), assumed.repeats)
    return found or {name: float(spread) for name, spread in USUAL_SPREADS.items()}


def _sensitivity(name: str, spread: float, tasks: int, level: Level, alpha: Fraction) -> Sensitivity:
    return Sensitivity(
        scenario=name,
        difference_sd=_text(spread, 4),
        level=level,
        detectable_points=_text(100 * power.detectable(spread, tasks, alpha), 1),
        tasks_for_margin=_tasks(power.tasks_for_shift(spread, MARGIN, alpha)),
        lead_needed_points=_text(100 * power.lead_needed(spread, tasks, MARGIN, alpha), 1),
        tie_within_margin_if_equal=_text(power.tie_chance(spread, tasks, MARGIN, alpha), 4),
    )


def _log_spreads(assumed: RoundAssumptions) -> dict[TieBreak, float]:
    found: dict[TieBreak, float] = {"cost": float(assumed.cost_log_sd)}
    if assumed.time_log_sd is not None:
        found["time"] = float(assumed.time_log_sd)
    return found


def _savings(assumed: RoundAssumptions, levels: Mapping[Level, Fraction]) -> Iterator[Saving]:
    for criterion, spread in _log_spreads(assumed).items():
        for percent in assumed.savings_percent:
            for level, alpha in levels.items():
                needed = power.tasks_for_saving(spread, Fraction(percent, 100), alpha)
                yield Saving(criterion=criterion, saving_percent=percent, level=level, tasks_needed=_tasks(needed))


def _firings(
    assumed: RoundAssumptions, spreads: Mapping[str, float], levels: Mapping[Level, Fraction]
) -> Iterator[Firing]:
    lead = float(assumed.lead_points) / 100
    times = None if assumed.time_log_sd is None else float(assumed.time_log_sd)
    for criterion in _log_spreads(assumed):
        for name, spread in spreads.items():
            for percent in assumed.savings_percent:
                saved = Fraction(percent, 100)
                cost, time = (saved, Fraction(0)) if criterion == "cost" else (Fraction(0), saved)
                truth = power.Truth(spread, float(assumed.cost_log_sd), times, lead, cost, time)
                for level, alpha in levels.items():
                    found = power.chances(truth, assumed.tasks, margin=MARGIN, saving=SAVING, level=alpha)
                    yield Firing(
                        scenario=name,
                        level=level,
                        criterion=criterion,
                        saving_percent=percent,
                        success_decides=_text(found.success, 4),
                        tie_break_fires=_text((found.cost if criterion == "cost" else found.time) or 0.0, 4),
                    )


def _notes(assumed: RoundAssumptions, pairs: int, spreads: Mapping[str, float], pilot: Pilot | None) -> Iterator[str]:
    tasks = assumed.tasks
    if tasks < TASKS_FEW:
        yield f"Fewer than {TASKS_FEW} tasks: percentile intervals are too narrow, so these figures promise too much."
    elif tasks < TASKS_FEW_FOR_MANY_PAIRS and pairs > PAIRS_MANY:
        yield (
            f"Fewer than {TASKS_FEW_FOR_MANY_PAIRS} tasks for {pairs} comparisons: Holm's extreme tails can reject too "
            "often."
        )
    if tail_rank(RESAMPLES, ALPHA / pairs) == 0:
        yield f"{RESAMPLES:,} resamples are too few for {pairs} comparisons: Holm's first step can reject nothing."
    if max(power.tie_chance(spread, tasks, MARGIN, ALPHA / pairs) for spread in spreads.values()) < _RARE:
        yield (
            "For equally successful arms the cost and time rules will almost never fire: the success interval is too "
            f"wide to lie above -{MARGIN_POINTS} points."
        )
    if pilot is not None and pilot.rehearsal:
        yield "The pilot is a rehearsal: its spreads are those of a script, not of a model."
    if pilot is not None and "cost_log_sd" not in pilot.measured:
        yield f"The pilot gives no spread of costs; {assumed.cost_log_sd} is assumed."
    if assumed.time_log_sd is None:
        yield "The time rule is not planned for: no spread of times is assumed."
    yield "Normal approximation; the estimates of success, cost and time are taken as independent."


def _gates(assumed: GateAssumptions) -> GatePlanning:
    chances = {rate: power.gate_chances(Fraction(rate), assumed.cells) for rate in assumed.success_rate}
    return GatePlanning(
        assumptions=assumed,
        gates=tuple(
            GateChance(
                success_rate=f"{rate:f}",
                passes_80_percent=decimal_text(found.absolute, 4),
                passes_95_percent_of_equal=decimal_text(found.relative_to_equal, 4),
            )
            for rate, found in chances.items()
        ),
        false_pass_upper_if_none=_upper(assumed.cells * assumed.policies),
        false_pass_upper_if_none_of_one_policy=_upper(assumed.cells),
        notes=(
            "Cells are taken as independent; repetitions of one scenario are not, so the spread is larger in truth.",
        ),
    )


def _upper(cells: int) -> str:
    found = wilson(0, cells)
    return UNBOUNDED_TEXT if found is None else decimal_text(Fraction(found.high), 4)


def _index(assumed: IndexAssumptions) -> IndexPlanning:
    return IndexPlanning(
        assumptions=assumed,
        cost_per_success=tuple(
            UnboundedChance(success_rate=f"{rate:f}", upper_end_unbounded=decimal_text(_unbounded(rate, assumed), 4))
            for rate in assumed.success_rate
        ),
        notes=tuple(_index_notes(assumed.instances)),
    )


def _unbounded(rate: Decimal, assumed: IndexAssumptions) -> Fraction:
    _, last = ranks(cost_index.RESAMPLES)
    return power.unbounded_chance(Fraction(rate), assumed.instances, cost_index.RESAMPLES, last)


def _index_notes(instances: int) -> Iterator[str]:
    if instances < P95_CASES_MIN:
        yield f"With fewer than {P95_CASES_MIN} values, the 95th percentile is the largest one."
    if instances < 59:
        yield "Fewer than 59 values have no finite distribution-free 95 % limit above their 95th percentile."
    yield "Instances are taken as independent clusters."


def _text(value: float, places: int) -> str:
    return decimal_text(Fraction(value), places)


def _tasks(needed: int | None) -> int | str:
    return UNBOUNDED_TEXT if needed is None else needed
