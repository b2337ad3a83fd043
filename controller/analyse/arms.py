"""The resampled quantities of every arm, under one index matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.analyse import table as of
from controller.analyse.draws import QuantileDraws, Resampler, Sums
from controller.analyse.quantile import Pooled, nearest_rank
from controller.analyse.resample import Int64s
from controller.analyse.table import ArmTable, ByTask
from controller.domain.exact import UNBOUNDED, Exact
from controller.domain.outcome import CUT_SHORT

QUANTILES: Final = {"p50": Fraction(1, 2), "p90": Fraction(9, 10)}


@dataclass(frozen=True, slots=True)
class Spend:
    """A per-task integer total with its unit, its exact sum, and its resampled sums."""

    total: Fraction
    unit: Fraction
    sums: Sums


@dataclass(frozen=True, slots=True)
class Counted:
    """A count over the tasks, and its resampled sums."""

    total: int
    sums: Sums

    @property
    def drawn(self) -> Int64s:
        """One count per replicate."""
        return self.sums.limbs[0]


@dataclass(frozen=True, slots=True)
class ArmDraws:
    """What the estimates and the pair comparisons need of one arm."""

    table: ArmTable
    succeeded: Counted
    ended_normally: Counted  # logical runs whose scored attempt did
    would_have_passed: Counted
    disagreeing: Counted  # tasks with some, but not all, repeats successful
    by_successes: tuple[Counted, ...]  # tasks with 0, 1, ... successful repeats
    cost: Spend | None
    tokens: Spend | None
    cache: tuple[Counted, Counted] | None  # cache-read tokens, all input tokens
    quantiles: dict[str, QuantileDraws | None]

    @property
    def successes(self) -> Int64s:
        return self.succeeded.drawn

    @property
    def success_count(self) -> int:
        return self.succeeded.total

    @property
    def cost_per_success(self) -> Exact | None:
        """None when a cost is unknown, infinite without a success."""
        return per(self.cost, self.success_count)


def per(spend: Spend | None, successes: int) -> Exact | None:
    """Spend per success: None when unknown, unbounded without a success whatever was spent."""
    if spend is None:
        return None
    return spend.total / successes if successes else UNBOUNDED


def draw_arms(tables: Sequence[ArmTable], resampler: Resampler) -> dict[str, ArmDraws]:
    """Resample every arm at once: all sums together, quantiles arm by arm."""
    columns: list[Sequence[int]] = []
    places = []
    for arm in tables:
        start = len(columns)
        columns += _counts(arm)
        optional = (_totals(arm.known_costs()), _totals(arm.values(of.total_tokens)), *_cache(arm))
        at = []
        for column in optional:
            at.append(None if column is None else len(columns))
            columns += [] if column is None else [column]
        places.append((start, at))
    sums = resampler.sums(columns)

    def counted(place: int) -> Counted:
        return Counted(sum(columns[place]), sums[place])

    def spend(place: int | None, unit: Fraction) -> Spend | None:
        return None if place is None else Spend(sum(columns[place]) * unit, unit, sums[place])

    drawn = {}
    for arm, (start, (cost, tokens, read, prompt)) in zip(tables, places, strict=True):
        repeats = len(arm.runs[0])
        drawn[arm.arm] = ArmDraws(
            table=arm,
            succeeded=counted(start),
            ended_normally=counted(start + 1),
            would_have_passed=counted(start + 2),
            disagreeing=counted(start + 3),
            by_successes=tuple(counted(start + 4 + hits) for hits in range(repeats + 1)),
            cost=spend(cost, arm.money_unit),
            tokens=spend(tokens, Fraction(1)),
            cache=None if read is None or prompt is None else (counted(read), counted(prompt)),
            quantiles=_quantiles(arm, resampler),
        )
    return drawn


def _counts(arm: ArmTable) -> list[Sequence[int]]:
    """The columns that every arm has, in the order in which `draw_arms` reads them."""
    repeats = len(arm.runs[0])
    return [
        arm.successes,
        [sum(of.ended_normally(run) for run in task) for task in arm.runs],
        [sum(of.would_have_passed(run) for run in task) for task in arm.runs],
        [int(0 < hits < repeats) for hits in arm.successes],
        *([int(found == hits) for found in arm.successes] for hits in range(repeats + 1)),
    ]


def _totals(values: ByTask | None) -> list[int] | None:
    return None if values is None else [sum(task) for task in values]


def _cache(arm: ArmTable) -> tuple[list[int] | None, list[int] | None]:
    return _totals(arm.values(of.cache_read_tokens)), _totals(arm.values(of.prompt_tokens))


def _quantiles(arm: ArmTable, resampler: Resampler) -> dict[str, QuantileDraws | None]:
    """Times and counts rank over the runs that ran, for one that never did has none; costs need every run's."""
    times = [[run.wall_ms for run in task if run.wall_ms is not None] for task in arm.runs]
    cut = [run.wall_ms for run in arm.all_runs if run.wall_ms is not None and run.is_censored]
    scored = [[run.scored for run in task if run.scored is not None] for task in arm.runs]
    own_times = [[attempt.wall_ms for attempt in task] for task in scored]
    own_cut = [attempt.wall_ms for task in scored for attempt in task if attempt.end in CUT_SHORT]
    ran = [[run for run in task if run.attempts] for task in arm.runs]
    measured: dict[str, tuple[ByTask | None, Fraction, int | None]] = {
        "wall_ms": (times, Fraction(1), min(cut, default=None)),
        "scored_wall_ms": (own_times, Fraction(1), min(own_cut, default=None)),
        "usd": (arm.known_costs(), arm.money_unit, None),
        "turns": (of.all_known([[of.turns(run) for run in task] for task in ran]), Fraction(1), None),
        "tool_calls": (of.all_known([[of.tool_calls(run) for run in task] for task in ran]), Fraction(1), None),
    }
    found: dict[str, QuantileDraws | None] = {}
    for metric, (values, unit, censored_from) in measured.items():
        if values is None or not any(values):
            found.update({f"{metric}_{name}": None for name in QUANTILES})
            continue
        if metric == "scored_wall_ms" and (values, censored_from) == (times, measured["wall_ms"][2]):
            found.update({f"{metric}_{name}": found[f"wall_ms_{name}"] for name in QUANTILES})
            continue
        pooled = Pooled.of(values)
        positions = resampler.positions(pooled, tuple(QUANTILES.values()))
        for name, position in zip(QUANTILES, positions, strict=True):
            found[f"{metric}_{name}"] = QuantileDraws(pooled, position, unit, censored_from)
    return found


def quantile_value(draws: QuantileDraws, quantile: Fraction) -> tuple[Fraction, bool]:
    """The observed quantile, and whether it is only a lower bound."""
    values = draws.pooled.values
    value = values[nearest_rank(quantile, len(values)) - 1]
    return value * draws.unit, draws.censored_from is not None and value >= draws.censored_from
