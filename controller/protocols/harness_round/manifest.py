"""What harness-round freezes beside the engine's plan: how the round will be analysed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, Literal

from pydantic import Field

from controller.domain.ids import Slug
from controller.domain.limits import SandboxLimits, SpendLimits
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.protocols.harness_round.decision import MARGIN_POINTS, SAVING_PERCENT

REPLICATES: Final = 3
RESAMPLES: Final = 10_000
FIXED_SANDBOX: Final = SandboxLimits()
FIXED_SPEND: Final = SpendLimits()
_QUANTILES: Final = {"p50": "median", "p90": "90th percentile"}
_MEASURES: Final = {
    "wall_ms": "harness wall time over every attempt of a logical run",
    "scored_wall_ms": "harness wall time of the scored attempt alone",
    "usd": "true upstream cost over every attempt of a logical run",
    "turns": "metered requests over every attempt of a logical run",
    "tool_calls": "tool calls over every attempt of a logical run, unknown in rounds of this engine",
}
# Every estimand of an arm by its name in the analysis, then those of a pair, each with its definition.
METRICS: Final[Mapping[str, str]] = {
    "success_rate": "verified successes / all predeclared logical runs, every task of equal weight; primary, "
    "on the sealed tasks if any task is sealed",
    "cost_per_success": "true upstream cost of every attempt, failed and retried ones too / successes; "
    "unbounded without one",
    "tokens_per_success": "billable tokens of every attempt / successes; unbounded without one",
    **{
        f"{measure}_{quantile}": f"{name}, nearest rank, of the {what}"
        for measure, what in _MEASURES.items()
        for quantile, name in _QUANTILES.items()
    },
    "conditional_quality": "successes / logical runs whose scored attempt ended normally; decides nothing",
    "cache_hit_rate": "input tokens read from a cache / all input tokens; not applicable without input",
    "would_have_passed_rate": "logical runs with a patch that passes after another end than a normal one / all",
    "disagreement": "tasks with both a success and another outcome among their repeats / all tasks",
    "tasks_by_successes": "tasks by the number of their successful repeats",
    "success_difference": "difference of two arms' success rates, paired and resampled by task",
    "cost_ratio": "ratio of two arms' costs per success, paired and resampled by task",
    "wall_ms_p90_ratio": "ratio of two arms' 90th percentiles of wall time, paired and resampled by task",
}


class AnalysisPlan(Record):
    """How the round will be analysed, fixed before the first outcome. No metric is added or dropped afterwards."""

    generator: Literal["shake128-mulshift64/v1"] = "shake128-mulshift64/v1"
    resamples: int = Field(default=RESAMPLES, ge=100, le=1_000_000)
    level_percent: Literal[95] = 95
    intervals: Literal["holm-compatible"] = "holm-compatible"
    quantiles: Literal["nearest-rank"] = "nearest-rank"
    comparisons: tuple[tuple[Slug, Slug], ...]  # unordered pairs; their number is the size of each Holm family
    margin_points: int = Field(default=MARGIN_POINTS, ge=0, le=100)
    saving_percent: int = Field(default=SAVING_PERCENT, ge=0, le=100)
    metrics: dict[str, str] = Field(default_factory=lambda: dict(METRICS))  # name to definition


class HarnessRoundManifest(RoundManifest):
    """The complete plan of a harness-round round. A rehearsal may vary limits and repeats; a measured round may not."""

    protocol: Literal["harness-round"] = "harness-round"
    analysis: AnalysisPlan

    def faults(self) -> Iterator[str]:
        """Where the manifest departs from the protocol, each as `field: fault`."""
        yield from super().faults()
        if self.analysis.comparisons != all_pairs([arm.id for arm in self.arms]):
            yield "analysis.comparisons: must be every pair of arms, in byte order"
        if self.kind == "rehearsal":
            return
        if self.retail_policy is None:
            yield "retail_policy: a measured round names the policy of its retail simulation"
        fixed = (
            ("replicates", self.replicates, REPLICATES),
            ("sandbox_limits", self.sandbox_limits, FIXED_SANDBOX),
            ("spend_limits", self.spend_limits, FIXED_SPEND),
            ("analysis.resamples", self.analysis.resamples, RESAMPLES),
            ("analysis.margin_points", self.analysis.margin_points, MARGIN_POINTS),
            ("analysis.saving_percent", self.analysis.saving_percent, SAVING_PERCENT),
            ("analysis.metrics", self.analysis.metrics, METRICS),
        )
        yield from (f"{name}: fixed by the protocol for measured rounds" for name, value, fix in fixed if value != fix)


def all_pairs(arms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Every unordered pair, arms in byte order."""
    return tuple(combinations(sorted(arms), 2))
