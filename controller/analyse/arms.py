"""The estimates of one arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.analyse import table as of
from controller.analyse.draws import QuantileDraws, Resampler, Sums, per_success
from controller.analyse.holm import interval
from controller.analyse.quantile import Pooled, nearest_rank
from controller.analyse.replicates import Ordered, WholeReplicates
from controller.analyse.resample import Int64s
from controller.analyse.table import ArmTable, ByTask
from controller.domain.exact import UNBOUNDED, Exact, exact_text
from controller.domain.money import usd_to_text
from controller.protocols.harness_round.estimates import ArmAnalysis, Estimate, TaskRecord, Unit, VisibilityRecord
from controller.protocols.harness_round.show import NOT_APPLICABLE, shown

QUANTILES: Final = {"p50": Fraction(1, 2), "p90": Fraction(9, 10)}
_METRICS: Final[tuple[tuple[str, Unit], ...]] = (
    ("wall_ms", "ms"),
    ("usd", "usd"),
    ("turns", "count"),
    ("tool_calls", "count"),
)
_FEWER_THAN_TWO: Final = "fewer than two tasks, so no interval is claimed"


@dataclass(frozen=True, slots=True)
class Spend:
    """A per-task integer total with its unit, its exact sum, and its resampled sums."""

    total: Fraction
    unit: Fraction
    sums: Sums


@dataclass(frozen=True, slots=True)
class ArmDraws:
    """What the pair comparisons reuse of one arm."""

    table: ArmTable
    successes: Int64s
    cost: Spend | None
    tokens: Spend | None
    quantiles: dict[str, QuantileDraws | None]

    @property
    def success_count(self) -> int:
        return sum(self.table.successes)

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
    """Resample every arm at once: sums by one matrix product, quantiles arm by arm."""
    columns: list[Sequence[int]] = []
    places = []
    for arm in tables:
        columns.append(arm.successes)
        successes_at = len(columns) - 1
        cost = _place(arm.known_costs(), arm.money_unit, columns)
        places.append((successes_at, cost, _place(arm.values(of.total_tokens), Fraction(1), columns)))
    sums = resampler.sums(columns)
    return {
        arm.arm: ArmDraws(
            table=arm,
            successes=sums[successes_at].limbs[0],
            cost=None if cost is None else Spend(cost.total, cost.unit, sums[cost.column]),
            tokens=None if tokens is None else Spend(tokens.total, tokens.unit, sums[tokens.column]),
            quantiles=_quantiles(arm, resampler),
        )
        for arm, (successes_at, cost, tokens) in zip(tables, places, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Placed:
    column: int
    unit: Fraction
    total: Fraction


def _place(values: ByTask | None, unit: Fraction, columns: list[Sequence[int]]) -> _Placed | None:
    """Append the per-task totals as a column; None when a value is unknown."""
    if values is None:
        return None
    totals = [sum(task) for task in values]
    columns.append(totals)
    return _Placed(len(columns) - 1, unit, sum(totals) * unit)


def _quantiles(arm: ArmTable, resampler: Resampler) -> dict[str, QuantileDraws | None]:
    """Times rank over all scored runs, for one that never ran has none; the others need every run's value."""
    times = [[run.wall_ms for run in task if run.wall_ms is not None] for task in arm.runs]
    cut = [run.wall_ms for run in arm.all_runs if run.wall_ms is not None and of.censored(run)]
    measured: dict[str, tuple[ByTask | None, Fraction, int | None]] = {
        "wall_ms": (times, Fraction(1), min(cut, default=None)),
        "usd": (arm.known_costs(), arm.money_unit, None),
        "turns": (arm.values(of.turns), Fraction(1), None),
        "tool_calls": (arm.values(of.tool_calls), Fraction(1), None),
    }
    found: dict[str, QuantileDraws | None] = {}
    for metric, (values, unit, censored_from) in measured.items():
        if values is None or not any(values):
            found.update({f"{metric}_{name}": None for name in QUANTILES})
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


def arm_analysis(draws: ArmDraws, task_ids: Sequence[str], everything: ArmTable) -> ArmAnalysis:
    """All estimates of one arm. `everything` holds the same arm on all tasks, also those outside the headline."""
    table, runs = draws.table, draws.table.all_runs
    tasks, count = len(task_ids), len(table.all_runs)
    unit = Fraction(1, count)
    disagreeing = sum(0 < hits < len(task) for hits, task in zip(table.successes, table.runs, strict=True))
    would_pass = sum(of.would_have_passed(run) for run in runs)
    rate = Fraction(draws.success_count, count)
    cache = of.cache_hit_rate(table)
    return ArmAnalysis(
        arm=table.arm,
        logical_runs=count,
        successes=draws.success_count,
        failures=table.outcomes["failure"],
        invalid=table.outcomes["invalid"],
        missing=table.outcomes["missing"],
        would_have_passed=would_pass,
        attempts=sum(len(run.attempts) for run in runs),
        retries=sum(max(0, len(run.attempts) - 1) for run in runs),
        usd_total=None if draws.cost is None else usd_to_text(draws.cost.total),
        usd_total_shown=shown(None if draws.cost is None else draws.cost.total, "usd"),
        success_rate=_estimate("success_rate", "share", rate, WholeReplicates(draws.successes, unit), tasks, count),
        cost_per_success=_spend(draws, draws.cost, "cost_per_success", "usd", tasks, count),
        tokens_per_success=_spend(draws, draws.tokens, "tokens_per_success", "tokens", tasks, count),
        quantiles=tuple(
            _quantile_estimate(f"{metric}_{name}", kind, draws, quantile, tasks)
            for metric, kind in _METRICS
            for name, quantile in QUANTILES.items()
        ),
        cache_hit_rate=exact_text(cache),
        cache_hit_rate_shown=shown(cache, "share"),
        tasks_disagreeing=disagreeing,
        disagreement=str(Fraction(disagreeing, tasks)),
        success_rate_if_unknown_succeeded=str(Fraction(draws.success_count + table.unknown, count)),
        success_rate_if_would_have_passed=str(Fraction(draws.success_count + would_pass, count)),
        by_visibility=_by_visibility(everything),
        tasks=tuple(
            TaskRecord(
                task=task,
                successes=hits,
                replicates=len(repeats),
                would_have_passed=sum(of.would_have_passed(run) for run in repeats),
                unknown=sum(run.outcome in ("invalid", "missing") for run in repeats),
            )
            for task, hits, repeats in zip(task_ids, table.successes, table.runs, strict=True)
        ),
    )


def _by_visibility(arm: ArmTable) -> tuple[VisibilityRecord, ...]:
    return tuple(
        VisibilityRecord(
            visibility=kind,
            tasks=len({run.task for run in arm.all_runs if run.visibility == kind}),
            logical_runs=sum(run.visibility == kind for run in arm.all_runs),
            successes=sum(run.visibility == kind and run.outcome == "success" for run in arm.all_runs),
        )
        for kind in ("public", "sealed", "holdout")
        if any(run.visibility == kind for run in arm.all_runs)
    )


def _spend(draws: ArmDraws, spend: Spend | None, name: str, unit: Unit, tasks: int, count: int) -> Estimate:
    value = per(spend, draws.success_count)
    if spend is None or value is None:
        reason = f"the cost of {draws.table.unknown_costs} of {count} logical runs is unknown, and unknown is not zero"
        return _estimate(name, unit, None, None, tasks, count, reason=reason)
    replicates = per_success(spend.sums, spend.unit, draws.successes)
    estimate = _estimate(name, unit, value, replicates, tasks, count)
    return estimate.model_copy(update={"infinite_replicates": replicates.infinite})


def _quantile_estimate(name: str, unit: Unit, draws: ArmDraws, quantile: Fraction, tasks: int) -> Estimate:
    drawn = draws.quantiles[name]
    if drawn is None:
        count = len(draws.table.all_runs)
        return _estimate(name, unit, None, None, tasks, count, reason="not known for every logical run")
    value, at_least = quantile_value(drawn, quantile)
    limit = None if drawn.censored_from is None else drawn.censored_from * drawn.unit
    estimate = _estimate(name, unit, value, drawn, tasks, len(drawn.pooled.values), censored_from=limit)
    return estimate.model_copy(update={"undefined_replicates": drawn.undefined, "lower_bound_only": at_least})


def _estimate(
    name: str,
    unit: Unit,
    value: Exact | None,
    replicates: Ordered | None,
    tasks: int,
    count: int,
    *,
    reason: str = "",
    censored_from: Fraction | None = None,
) -> Estimate:
    """The record of one estimand, with its interval at 95 % where one may be claimed."""
    k, low, high = None, None, None
    if replicates is not None and tasks < 2:
        reason = _FEWER_THAN_TWO
    elif replicates is not None:
        k, low, high = interval(replicates)

    def text(bound: Exact | None) -> str:
        at_least = bound is not None and censored_from is not None and bound >= censored_from
        return shown(bound, unit, at_least=at_least)

    return Estimate(
        estimand=name,
        unit=unit,
        value=exact_text(value),
        value_shown=text(value),
        low=exact_text(low),
        high=exact_text(high),
        low_shown=NOT_APPLICABLE if low is None else text(low),
        high_shown=NOT_APPLICABLE if high is None else text(high),
        k=k,
        tasks=tasks,
        logical_runs=count,
        reason=reason,
    )
