"""The estimates of one arm, each with its interval at 95 % where one may be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.analyse import table as of
from controller.analyse.arms import QUANTILES, ArmDraws, Counted, Spend, per, quantile_value
from controller.analyse.draws import QuantileDraws, per_success, share
from controller.analyse.holm import interval
from controller.analyse.replicates import Ordered, WholeReplicates
from controller.analyse.table import ArmTable
from controller.domain.exact import Exact, exact_text
from controller.domain.money import usd_to_text
from controller.protocols.harness_round.estimates import (
    ArmAnalysis,
    Estimate,
    RepeatsRecord,
    TaskRecord,
    Unit,
    VisibilityRecord,
)
from controller.protocols.harness_round.show import NOT_APPLICABLE, shown

_METRICS: Final[tuple[tuple[str, Unit], ...]] = (
    ("wall_ms", "ms"),
    ("scored_wall_ms", "ms"),
    ("usd", "usd"),
    ("turns", "count"),
    ("tool_calls", "count"),
)
_FEWER_THAN_TWO: Final = "fewer than two tasks, so no interval is claimed"


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the estimates of one arm over one number of tasks and of logical runs."""

    draws: ArmDraws
    tasks: int
    runs: int

    def counted(self, name: str, found: Counted, of_all: int) -> Estimate:
        """A count over a fixed number, as a share."""
        unit = Fraction(1, of_all)
        return self.estimate(name, "share", found.total * unit, WholeReplicates(found.drawn, unit), self.runs)

    def share(self, name: str, part: Counted, whole: Counted, *, count: int, reason: str) -> Estimate:
        """A count over a count that is resampled too; without a value, for that reason, when the whole is nothing."""
        if whole.total == 0:
            return self.estimate(name, "share", None, None, count, reason=reason)
        replicates = share(part.sums, whole.sums)
        found = self.estimate(name, "share", Fraction(part.total, whole.total), replicates, count)
        return found.model_copy(update={"undefined_replicates": replicates.undefined})

    def per_success(self, name: str, unit: Unit, spend: Spend | None) -> Estimate:
        value = per(spend, self.draws.success_count)
        if spend is None or value is None:
            return self.estimate(name, unit, None, None, self.runs, reason=self.unknown_cost())
        replicates = per_success(spend.sums, spend.unit, self.draws.successes)
        found = self.estimate(name, unit, value, replicates, self.runs)
        return found.model_copy(update={"infinite_replicates": replicates.infinite})

    def unknown_cost(self) -> str:
        unknown = self.draws.table.unknown_costs
        return f"the cost of {unknown} of {self.runs} logical runs is unknown, and unknown is not zero"

    def cache_hits(self) -> Estimate:
        if self.draws.cache is None:
            return self.estimate("cache_hit_rate", "share", None, None, self.runs, reason=self.unknown_cost())
        read, prompt = self.draws.cache
        return self.share("cache_hit_rate", read, prompt, count=self.runs, reason="there were no input tokens")

    def quantile(self, metric: str, unit: Unit, name: str, quantile: Fraction) -> Estimate:
        estimand = f"{metric}_{name}"
        drawn = self.draws.quantiles[estimand]
        if drawn is None:
            return self.estimate(estimand, unit, None, None, self.runs, reason="not known for every logical run")
        value, at_least = quantile_value(drawn, quantile)
        found = self.estimate(estimand, unit, value, drawn, len(drawn.pooled.values), censored_from=_limit(drawn))
        return found.model_copy(update={"undefined_replicates": drawn.undefined, "lower_bound_only": at_least})

    def estimate(
        self,
        name: str,
        unit: Unit,
        value: Exact | None,
        replicates: Ordered | None,
        count: int,
        *,
        reason: str = "",
        censored_from: Fraction | None = None,
    ) -> Estimate:
        """The record of one estimand over so many logical runs."""
        k, low, high = None, None, None
        if replicates is not None and self.tasks < 2:
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
            tasks=self.tasks,
            logical_runs=count,
            reason=reason,
        )


def _limit(drawn: QuantileDraws) -> Fraction | None:
    return None if drawn.censored_from is None else drawn.censored_from * drawn.unit


def arm_analysis(draws: ArmDraws, task_ids: Sequence[str], everything: ArmTable) -> ArmAnalysis:
    """All estimates of one arm. `everything` holds the same arm on all tasks, also those outside the headline."""
    table = draws.table
    tasks, count, repeats = len(task_ids), len(table.all_runs), len(draws.by_successes) - 1
    make = _Maker(draws, tasks, count)
    return ArmAnalysis(
        arm=table.arm,
        logical_runs=count,
        successes=draws.success_count,
        failures=table.outcomes["failure"],
        invalid=table.outcomes["invalid"],
        missing=table.outcomes["missing"],
        would_have_passed=draws.would_have_passed.total,
        ended_normally=draws.ended_normally.total,
        attempts=sum(len(run.attempts) for run in table.all_runs),
        retries=sum(max(0, len(run.attempts) - 1) for run in table.all_runs),
        usd_total=None if draws.cost is None else usd_to_text(draws.cost.total),
        usd_total_shown=shown(None if draws.cost is None else draws.cost.total, "usd"),
        success_rate=make.counted("success_rate", draws.succeeded, count),
        cost_per_success=make.per_success("cost_per_success", "usd", draws.cost),
        tokens_per_success=make.per_success("tokens_per_success", "tokens", draws.tokens),
        quantiles=tuple(
            make.quantile(metric, unit, name, quantile)
            for metric, unit in _METRICS
            for name, quantile in QUANTILES.items()
        ),
        conditional_quality=make.share(
            "conditional_quality",
            draws.succeeded,
            draws.ended_normally,
            count=draws.ended_normally.total,
            reason="no logical run ended normally",
        ),
        cache_hit_rate=make.cache_hits(),
        would_have_passed_rate=make.counted("would_have_passed_rate", draws.would_have_passed, count),
        tasks_disagreeing=draws.disagreeing.total,
        disagreement=make.counted("disagreement", draws.disagreeing, tasks),
        by_successes=tuple(
            RepeatsRecord(
                successes=hits,
                replicates=repeats,
                tasks=found.total,
                share=make.counted(f"tasks_with_{hits}_of_{repeats}", found, tasks),
            )
            for hits, found in enumerate(draws.by_successes)
        ),
        success_rate_if_unknown_succeeded=str(Fraction(draws.success_count + table.unknown, count)),
        success_rate_if_would_have_passed=str(Fraction(draws.success_count + draws.would_have_passed.total, count)),
        by_visibility=_by_visibility(everything),
        tasks=_task_records(table, task_ids),
    )


def _task_records(table: ArmTable, task_ids: Sequence[str]) -> tuple[TaskRecord, ...]:
    return tuple(
        TaskRecord(
            task=task,
            successes=hits,
            replicates=len(repeats),
            would_have_passed=sum(of.would_have_passed(run) for run in repeats),
            unknown=sum(run.outcome in ("invalid", "missing") for run in repeats),
        )
        for task, hits, repeats in zip(task_ids, table.successes, table.runs, strict=True)
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
