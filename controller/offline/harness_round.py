"""What the plan of a harness-round fixes for its analysis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, Tuple

from .plan import Plan, by_id
from .refusal import Refused
from .shapes import Between, Partial, Slug, read

FIXED = (10_000, 3, 10)  # resamples, margin in points and saving in percent of a measured round


@dataclass(frozen=True)
class HarnessRound(Partial):
    """The frozen analysis. The number of comparisons is the size of each Holm family."""

    generator: Literal["shake128-mulshift64/v1"]
    resamples: Annotated[int, Between(100, 1_000_000)]
    level_percent: Literal[95]
    intervals: Literal["holm-compatible"]
    quantiles: Literal["nearest-rank"]
    comparisons: Tuple[Tuple[Slug, Slug], ...]
    margin_points: Annotated[int, Between(0, 100)]
    saving_percent: Annotated[int, Between(0, 100)]


def harness_round_of(manifest: Any, plan: Plan) -> HarnessRound:
    """Read strictly; the pairs are all pairs, and a measured round has the numbers of the protocol. Raises Refused."""
    found = read(HarnessRound, manifest.get("analysis"), "manifest.json: analysis")
    if found.comparisons != tuple(combinations([arm.id for arm in by_id(plan.arms)], 2)):
        raise Refused("manifest.json: the comparisons are not every pair of arms in byte order")
    limits = (
        plan.replicates,
        plan.sandbox_limits.agent_seconds,
        plan.spend_limits.requests_per_attempt,
        plan.spend_limits.requests_per_logical_run,
        plan.spend_limits.usd_per_attempt,
        plan.spend_limits.usd_per_logical_run,
    )
    numbers = (found.resamples, found.margin_points, found.saving_percent)
    if plan.kind == "measured" and (limits != (3, 1800, 60, 180, "1.00", "3.00") or numbers != FIXED):
        raise Refused("manifest.json: a measured round with other numbers than the protocol's")
    return found
