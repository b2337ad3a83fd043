"""The estimates of one arm, each with its interval at 95 %."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Dict, List, Optional, Sequence

from . import table as of
from .drawn_arm import SHARES, DrawnArm
from .holm import interval
from .money import usd_text
from .replicates import ZERO, Replicates
from .shown import NOT_APPLICABLE, Exact, exact_text, shown
from .table import Arm

METRICS = (("wall_ms", "ms"), ("scored_wall_ms", "ms"), ("usd", "usd"), ("turns", "count"), ("tool_calls", "count"))


class Estimates:
    """Makes the records of one arm."""

    def __init__(self, drawn: DrawnArm) -> None:
        self.drawn = drawn
        self.tasks, self.runs = len(drawn.arm.runs), len(drawn.arm.all_runs)
        self.unknown_cost = (
            f"the cost of {drawn.arm.unknown_costs} of {self.runs} logical runs is unknown, and unknown is not zero"
        )

    def share_of(self, name: str, column: str, whole: int) -> Dict[str, Any]:
        """A count over a fixed number."""
        found = self.drawn.columns[column]
        replicates = Replicates([(n, whole) for n in found.sums])
        return self._record(name, "share", Fraction(found.total, whole), replicates, self.runs)

    def share(self, name: str, part: str, whole: str, runs: int, reason: str) -> Dict[str, Any]:
        """A count over a count that is resampled too. A share of nothing may be 0 and may be 1."""
        if part not in self.drawn.columns:
            return self._record(name, "share", None, None, runs, reason=self.unknown_cost)
        some, every = self.drawn.columns[part], self.drawn.columns[whole]
        if every.total == 0:
            return self._record(name, "share", None, None, runs, reason=reason)
        low = [(n, d) if d else ZERO for n, d in zip(some.sums, every.sums)]
        high = [(n, d) if d else (1, 1) for n, d in zip(some.sums, every.sums)]
        replicates = Replicates(low, high)
        found = self._record(name, "share", Fraction(some.total, every.total), replicates, runs)
        return {**found, "undefined_replicates": replicates.doubtful}

    def per_success(self, name: str, column: str, unit: str, factor: Fraction) -> Dict[str, Any]:
        """A sum per success."""
        pairs = self.drawn.per_success(column)
        if pairs is None:
            return self._record(name, unit, None, None, self.runs, reason=self.unknown_cost)
        replicates = Replicates(pairs, unit=factor)
        found = self._record(name, unit, self.drawn.value_per_success(column, factor), replicates, self.runs)
        return {**found, "infinite_replicates": replicates.infinite}

    def quantile(self, name: str, unit: str) -> Dict[str, Any]:
        """A nearest-rank quantile."""
        found = self.drawn.quantiles.get(name)
        if found is None:
            return self._record(name, unit, None, None, self.runs, reason="not known for every logical run")
        replicates = found.replicates
        cut_from = None if found.cut_from is None else found.cut_from * found.unit
        record = self._record(name, unit, found.value * found.unit, replicates, found.runs, cut_from=cut_from)
        return {**record, "undefined_replicates": replicates.doubtful, "lower_bound_only": found.is_lower_bound}

    def _record(
        self,
        name: str,
        unit: str,
        value: Optional[Exact],
        replicates: Optional[Replicates],
        runs: int,
        *,
        reason: str = "",
        cut_from: Optional[Fraction] = None,
    ) -> Dict[str, Any]:
        k, low, high = None, None, None
        if replicates is not None and self.tasks < 2:
            reason = "fewer than two tasks, so no interval is claimed"
        elif replicates is not None:
            k, low, high = interval(replicates)

        def text(bound: Optional[Exact]) -> str:
            is_lower_bound = bound is not None and cut_from is not None and bound >= cut_from
            return shown(bound, unit, at_least=is_lower_bound)

        return {
            "estimand": name,
            "unit": unit,
            "value": exact_text(value),
            "value_shown": text(value),
            "low": exact_text(low),
            "high": exact_text(high),
            "low_shown": NOT_APPLICABLE if low is None else text(low),
            "high_shown": NOT_APPLICABLE if high is None else text(high),
            "level": "1/20",
            "k": k,
            "tasks": self.tasks,
            "logical_runs": runs,
            "infinite_replicates": 0,
            "undefined_replicates": 0,
            "lower_bound_only": False,
            "reason": reason,
        }


def arm_record(drawn: DrawnArm, task_ids: Sequence[str], everything: Arm) -> Dict[str, Any]:
    """All estimates of one arm. `everything` is the same arm on all tasks, also those outside the headline."""
    arm, columns, make = drawn.arm, drawn.columns, Estimates(drawn)
    tasks, runs, repeats = len(task_ids), len(arm.all_runs), drawn.repeats
    attempts = [len(run["attempts"]) for run in arm.all_runs]
    cost = columns["cost"].total * arm.money_unit if "cost" in columns else None
    successes, passed = columns["succeeded"].total, columns["would_have_passed"].total
    return {
        "arm": arm.name,
        "logical_runs": runs,
        "successes": successes,
        "failures": arm.outcomes("failure"),
        "invalid": arm.outcomes("invalid"),
        "missing": arm.outcomes("missing"),
        "would_have_passed": passed,
        "ended_normally": columns["ended_normally"].total,
        "attempts": sum(attempts),
        "retries": sum(max(0, count - 1) for count in attempts),
        "usd_total": None if cost is None else usd_text(cost),
        "usd_total_shown": shown(cost, "usd"),
        "success_rate": make.share_of("success_rate", "succeeded", runs),
        "cost_per_success": make.per_success("cost_per_success", "cost", "usd", arm.money_unit),
        "tokens_per_success": make.per_success("tokens_per_success", "tokens", "tokens", Fraction(1)),
        "quantiles": [make.quantile(f"{metric}_{name}", unit) for metric, unit in METRICS for name in SHARES],
        "conditional_quality": make.share(
            "conditional_quality",
            "succeeded",
            "ended_normally",
            columns["ended_normally"].total,
            "no logical run ended normally",
        ),
        "cache_hit_rate": make.share("cache_hit_rate", "read", "prompt", runs, "there were no input tokens"),
        "would_have_passed_rate": make.share_of("would_have_passed_rate", "would_have_passed", runs),
        "tasks_disagreeing": columns["disagreeing"].total,
        "disagreement": make.share_of("disagreement", "disagreeing", tasks),
        "by_successes": [
            {
                "successes": hits,
                "replicates": repeats,
                "tasks": columns[str(hits)].total,
                "share": make.share_of(f"tasks_with_{hits}_of_{repeats}", str(hits), tasks),
            }
            for hits in range(repeats + 1)
        ],
        "success_rate_if_unknown_succeeded": str(Fraction(successes + arm.unknown, runs)),
        "success_rate_if_would_have_passed": str(Fraction(successes + passed, runs)),
        "by_visibility": _by_visibility(everything),
        "tasks": [
            {
                "task": task,
                "successes": hits,
                "replicates": len(row),
                "would_have_passed": sum(map(of.would_have_passed, row)),
                "unknown": sum(run["outcome"] in ("invalid", "missing") for run in row),
            }
            for task, hits, row in zip(task_ids, arm.successes, arm.runs)
        ],
    }


def _by_visibility(arm: Arm) -> List[Dict[str, Any]]:
    found = []
    for kind in ("public", "sealed", "holdout"):
        runs = [run for run in arm.all_runs if run["visibility"] == kind]
        if runs:
            found.append(
                {
                    "visibility": kind,
                    "tasks": len({run["task"] for run in runs}),
                    "logical_runs": len(runs),
                    "successes": sum(run["outcome"] == "success" for run in runs),
                }
            )
    return found
