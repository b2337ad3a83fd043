"""What harness-round freezes beside the engine's plan: the analysis, the stop rules and each harness's launch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, Literal

from pydantic import Field, model_validator

from controller.domain.ids import Slug
from controller.domain.launch import LaunchContract
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX, SandboxLimits, SpendLimits
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.protocols.harness_round.decision import MARGIN_POINTS, SAVING_PERCENT

REPLICATES: Final = 3
RESAMPLES: Final = 10_000
FIXED_SANDBOX: Final = SandboxLimits()
FIXED_SPEND: Final = SpendLimits()
# Every estimand of an arm by its name in the analysis, then those of a pair.
METRICS: Final = (
    "success_rate",
    "cost_per_success",
    "tokens_per_success",
    *(
        f"{metric}_{quantile}"
        for metric in ("wall_ms", "scored_wall_ms", "usd", "turns", "tool_calls")
        for quantile in ("p50", "p90")
    ),
    "conditional_quality",
    "cache_hit_rate",
    "would_have_passed_rate",
    "disagreement",
    "tasks_by_successes",
    "success_difference",
    "cost_ratio",
    "wall_ms_p90_ratio",
)


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
    metrics: tuple[str, ...] = METRICS


class StopRules(Record):
    """The predeclared events that end a round early; who is winning is not among them."""

    excused_percent_max: int = Field(default=5, ge=0, le=100)  # infrastructure and provider errors, of all attempts
    attempts_before_share: int = Field(default=40, ge=1)
    # Caps used up, too many errors, another model or other prices than were frozen, a person.
    events: tuple[str, ...] = ("authorization", "error-share", "observed-model", "operator", "rate-card")


class HarnessRoundManifest(RoundManifest):
    """The complete plan of a harness-round round. A rehearsal may vary limits and repeats; a measured round may not."""

    protocol: Literal["harness-round"] = "harness-round"
    analysis: AnalysisPlan
    stop_rules: StopRules = StopRules()
    attempts_per_logical_run_max: Literal[3] = ATTEMPTS_PER_LOGICAL_RUN_MAX
    exclusions: tuple[str, ...] = ()  # none: every predeclared logical run is in the denominator
    launch_contracts: dict[str, LaunchContract]  # by arm, with placeholders for prompt and token

    @model_validator(mode="after")
    def _fixed_for_every_counted_run(self) -> HarnessRoundManifest:
        found = problems(self)
        if found:
            raise ValueError("; ".join(found))
        return self


def all_pairs(arms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Every unordered pair, arms in byte order."""
    return tuple(combinations(sorted(arms), 2))


def problems(manifest: HarnessRoundManifest) -> tuple[str, ...]:
    """Where the manifest departs from the protocol, each as `field: fault`; empty when it does not."""
    found: list[str] = []
    arms = [arm.id for arm in manifest.arms]
    if manifest.analysis.comparisons != all_pairs(arms):
        found.append("analysis.comparisons: must be every pair of arms, in byte order")
    if sorted(manifest.launch_contracts) != sorted(arms):
        found.append("launch_contracts: must name every arm and nothing else")
    if manifest.kind == "measured":
        fixed = (
            ("replicates", manifest.replicates, REPLICATES),
            ("sandbox_limits", manifest.sandbox_limits, FIXED_SANDBOX),
            ("spend_limits", manifest.spend_limits, FIXED_SPEND),
            ("analysis.resamples", manifest.analysis.resamples, RESAMPLES),
            ("analysis.margin_points", manifest.analysis.margin_points, MARGIN_POINTS),
            ("analysis.saving_percent", manifest.analysis.saving_percent, SAVING_PERCENT),
            ("analysis.metrics", manifest.analysis.metrics, METRICS),
        )
        found += [f"{name}: fixed by the protocol for measured rounds" for name, value, fix in fixed if value != fix]
    return tuple(found)
