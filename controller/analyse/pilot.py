"""Spreads for planning, measured on a pilot's dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import log, sqrt
from statistics import stdev
from typing import Any, Final

from controller.analyse.arms import ArmDraws, draw_arms
from controller.analyse.dataset import check_rows
from controller.analyse.draws import Resampler, quantile_ratio
from controller.analyse.holm import interval
from controller.analyse.normal import critical
from controller.analyse.plan import plan_of_rows
from controller.analyse.planning import Pilot
from controller.analyse.quantile import at_rank
from controller.analyse.table import scope_of, table_of
from controller.domain.dataset import LogicalRunRow
from controller.domain.exact import UNBOUNDED, decimal_text
from controller.errors import InvalidInput

_PLACES: Final = 4
_SMALLEST: Final = 0.0001
MEASURED: Final = ("difference_sd", "cost_log_sd", "time_log_sd", "success_rate")


def pilot_assumptions(rows: Sequence[LogicalRunRow], *, name: str) -> tuple[Pilot, dict[str, Any]]:
    """What the pilot measured, as fields of `RoundAssumptions`: the middle and the widest spread over its pairs.

    Raises InvalidInput when no pair of arms can be compared, and when the rows contradict one another.
    """
    plan = plan_of_rows(rows)
    check_rows(rows, plan, name=name)
    table = table_of(rows, plan, scope_of(rows))
    tasks = len(table.tasks)
    draws = draw_arms(list(table.arms.values()), Resampler.of(plan.seed, tasks, plan.resamples))
    sound = [arm for arm in draws.values() if not arm.table.unknown]
    pairs = list(combinations(sound, 2)) if tasks >= 2 else []
    spreads = [value for pair in pairs if (value := _difference_sd(*pair)) > 0]
    if not spreads:
        raise InvalidInput(
            f"{name}: no two arms have known outcomes that differ on two tasks, so nothing can be planned"
        )
    measured: dict[str, Any] = {
        "repeats": plan.replicates,
        "difference_sd": sorted({_middle(spreads), _text(max(spreads))}),
    }
    for field, values in (
        ("cost_log_sd", [_cost_log_sd(*pair) for pair in pairs]),
        ("time_log_sd", [_time_log_sd(*pair) for pair in pairs]),
    ):
        known = [value for value in values if value is not None and value >= _SMALLEST]
        if known:
            measured[field] = _middle(known)
    rehearsal = any(row.kind == "rehearsal" for row in rows)
    return Pilot(dataset=name, tasks=tasks, pairs=len(pairs), measured=tuple(measured), rehearsal=rehearsal), measured


def merged(given: Mapping[str, Any], measured: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """The fields of both. Raises InvalidInput for one that the pilot measures and the plan gives too."""
    twice = [field for field in (*MEASURED, "repeats") if field in given and field in {*measured, "success_rate"}]
    faults = [
        f"{name}: {field}: is {given[field]}, but the pilot has {measured[field]}"
        if field == "repeats"
        else f"{name}: {field}: comes from the pilot; give one of the two"
        for field in twice
        if field != "repeats" or given[field] != measured[field]
    ]
    if faults:
        raise InvalidInput("\n".join(faults))
    return {**measured, **given}


def _difference_sd(first: ArmDraws, second: ArmDraws) -> float:
    repeats = len(first.table.runs[0])
    return stdev((a - b) / repeats for a, b in zip(first.table.successes, second.table.successes, strict=True))


def _cost_log_sd(first: ArmDraws, second: ArmDraws) -> float | None:
    """The spread of each task's pull on the logarithm of the cost ratio (the delta method); None when undefined."""
    ours, theirs = _pulls(first), _pulls(second)
    return None if ours is None or theirs is None else stdev(a - b for a, b in zip(ours, theirs, strict=True))


def _pulls(arm: ArmDraws) -> list[float] | None:
    costs = arm.table.known_costs()
    spent = 0 if costs is None else sum(map(sum, costs))
    if costs is None or not spent or not arm.success_count:
        return None
    tasks = len(costs)
    shares = zip(map(sum, costs), arm.table.successes, strict=True)
    return [tasks * (cost / spent - hits / arm.success_count) for cost, hits in shares]


def _time_log_sd(first: ArmDraws, second: ArmDraws) -> float | None:
    """The half-width of the 95 % interval of the p90 ratio's logarithm as a spread per task; None when unbounded."""
    ours, theirs = first.quantiles["wall_ms_p90"], second.quantiles["wall_ms_p90"]
    if ours is None or theirs is None:
        return None
    _, low, high = interval(quantile_ratio(ours, theirs))
    if low <= 0 or high == UNBOUNDED:
        return None
    return (log(high) - log(low)) / (2 * float(critical())) * sqrt(len(first.table.runs))


def _middle(values: Sequence[float]) -> str:
    return _text(float(at_rank([Fraction(value) for value in values], Fraction(1, 2)) or 0))


def _text(value: float) -> str:
    return decimal_text(Fraction(value), _PLACES)
