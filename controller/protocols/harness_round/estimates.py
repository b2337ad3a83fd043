"""What an analysis says, as records that serialise without floats.

Exact values are strings ("a/b", "a", "unbounded"); the `*_shown` strings beside them are rounded for readers and are
never computed with. Null means not applicable or not qualified, and a reason stands beside it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from controller.domain.exact import UNBOUNDED, exact_from_text
from controller.domain.ids import Digest
from controller.domain.plan import Seed, Visibility
from controller.domain.record import Record
from controller.protocols.harness_round.decision import Bounds, Criterion, Decision, PairEvidence

Unit = Literal["share", "usd", "tokens", "ms", "count", "ratio"]


class Estimate(Record):
    """One estimand of one arm: value, interval at 95 %, and what a sceptic needs beside them."""

    estimand: str
    unit: Unit
    value: str | None
    value_shown: str
    low: str | None
    high: str | None
    low_shown: str
    high_shown: str
    level: str = "1/20"
    k: int | None  # the interval runs from the k-th replicate from below to the k-th from above
    tasks: int
    logical_runs: int
    infinite_replicates: int = 0
    undefined_replicates: int = 0
    lower_bound_only: bool = False  # the value falls on a censored time: read it as "at least"
    reason: str = ""  # why a value or an interval is null


class TaskRecord(Record):
    """One task under one arm: how many of its repeats succeeded."""

    task: str
    successes: int
    replicates: int
    would_have_passed: int
    unknown: int


class RepeatsRecord(Record):
    """How many tasks have so many successful repeats, and their share."""

    successes: int
    replicates: int
    tasks: int
    share: Estimate


class VisibilityRecord(Record):
    visibility: Visibility
    tasks: int
    logical_runs: int
    successes: int


class ArmAnalysis(Record):
    """Everything estimated of one arm over the primary tasks."""

    arm: str
    logical_runs: int
    successes: int
    failures: int
    invalid: int
    missing: int
    would_have_passed: int  # passed verification after the harness crashed or was stopped: recorded, not a success
    ended_normally: int  # logical runs whose scored attempt did, whatever its verdict
    attempts: int
    retries: int
    usd_total: str | None
    usd_total_shown: str
    success_rate: Estimate
    cost_per_success: Estimate
    tokens_per_success: Estimate
    quantiles: tuple[Estimate, ...]
    conditional_quality: Estimate  # successes over runs that ended normally: no rule looks at it
    cache_hit_rate: Estimate  # cache-read tokens over all input tokens; null, not zero, without input tokens
    would_have_passed_rate: Estimate  # over all predeclared logical runs
    tasks_disagreeing: int  # at least one repeat succeeded and at least one did not
    disagreement: Estimate  # the share of tasks whose repeats disagree
    by_successes: tuple[RepeatsRecord, ...]  # tasks with 0, 1, ... successful repeats
    success_rate_if_unknown_succeeded: str  # sensitivity: every invalid or missing run counted as a success
    success_rate_if_would_have_passed: str  # sensitivity: every would_have_passed run counted as a success
    by_visibility: tuple[VisibilityRecord, ...]
    tasks: tuple[TaskRecord, ...]

    def quantile(self, estimand: str) -> Estimate:
        """The quantile of that name, such as "wall_ms_p90"; KeyError when there is none."""
        return {one.estimand: one for one in self.quantiles}[estimand]


class Comparison(Record):
    """One criterion of one pair, within that criterion's Holm family."""

    criterion: Criterion
    unit: Unit
    value: str | None  # success: first minus second; cost and time: first over second
    value_shown: str
    low: str | None
    high: str | None
    low_shown: str
    high_shown: str
    p: str
    p_adjusted: str
    p_adjusted_shown: str
    level: str
    k: int
    replicates_at_or_below: int | None
    replicates_at_or_above: int | None
    infinite_replicates: int
    undefined_replicates: int
    rejected: bool
    qualified: bool
    seed_sensitive: bool
    reason: str = ""


class Band(Record):
    """A Bonferroni interval: over all pairs and one criterion, these cover jointly at 95 %."""

    criterion: Criterion
    level: str
    k: int | None
    low: str | None
    high: str | None
    low_shown: str
    high_shown: str


class NonDecisional(Record):
    """Columns for the careful reader. The rules see a `PairEvidence`, which has no place for any of them.

    Decimal strings are rounded to the digits they show; null where the pair is not qualified or the tasks are too many.
    """

    decides: Literal[False] = False
    tasks_for_first: int
    tasks_for_second: int
    tasks_even: int
    sign_flip_p: str | None
    sign_flip_p_shown: str
    exact_tail_at_or_below: str | None  # P(difference <= 0) of the bootstrap with infinitely many resamples
    exact_tail_at_or_above: str | None
    exact_p: str | None  # twice the smaller tail, at most 1
    exact_p_shown: str
    bonferroni: tuple[Band, ...]
    difference_sd: str | None  # of the per-task differences of success rates
    detectable_unadjusted: str | None  # the true difference that 80 % of such rounds would tell from zero
    detectable_unadjusted_shown: str
    detectable_at_first_step: str | None  # the same at the first step of Holm's procedure over all planned pairs
    detectable_at_first_step_shown: str
    reason: str = ""


class PairAnalysis(Record):
    """One planned comparison. `beside` holds what decides nothing."""

    first: str
    second: str
    success: Comparison
    cost: Comparison
    time: Comparison
    decision: Decision
    sentence: str
    beside: NonDecisional


class Resampling(Record):
    """What is needed to draw the same resamples again."""

    generator: str
    label: str
    seed: Seed
    resamples: int
    tasks: int
    tasks_digest: Digest  # of the task ids in byte order, each ended by a newline
    matrix_digest: Digest


class Analysis(Record):
    """The whole result: a pure function of the dataset and the plan."""

    schema_version: Literal["fairtrial.analysis/1"] = "fairtrial.analysis/1"
    protocol: Literal["harness-round"] = "harness-round"
    round_id: str
    kind: Literal["rehearsal", "measured"]
    manifest_digest: Digest
    scope: Literal["sealed", "all"]  # which tasks the headline is about
    task_ids: tuple[str, ...]
    clusters: int
    replicates: int
    own_arms: tuple[str, ...]  # ours, as the manifest says
    alpha: str = "1/20"
    margin_points: int
    saving_percent: int
    resampling: Resampling
    arms: tuple[ArmAnalysis, ...]
    pairs: tuple[PairAnalysis, ...]
    headline: str  # names the winner and the difference first when an arm of ours lost
    tally: str  # how many of the planned comparisons show a reliable difference
    interval_note: str
    warnings: tuple[str, ...] = Field(default=())

    def arm(self, arm_id: str) -> ArmAnalysis:
        """The arm of that id; KeyError when the analysis has none."""
        return {arm.arm: arm for arm in self.arms}[arm_id]


def pair_evidence(pair: PairAnalysis, analysis: Analysis) -> PairEvidence:
    """What a finished pair's decision rested on, read back from the published strings."""
    first, second = analysis.arm(pair.first), analysis.arm(pair.second)
    difference = exact_from_text(pair.success.value)
    return PairEvidence(
        first=pair.first,
        second=pair.second,
        success_difference=difference if isinstance(difference, Fraction) else Fraction(0),
        success=_bounds(pair.success.low, pair.success.high),
        cost_first=_bounds(first.cost_per_success.value, first.cost_per_success.value),
        cost_second=_bounds(second.cost_per_success.value, second.cost_per_success.value),
        cost_ratio=_bounds(pair.cost.low, pair.cost.high),
        time_first=_time(first.quantile("wall_ms_p90")),
        time_second=_time(second.quantile("wall_ms_p90")),
        time_ratio=_bounds(pair.time.low, pair.time.high),
    )


def _bounds(low: str | None, high: str | None) -> Bounds | None:
    ends = exact_from_text(low), exact_from_text(high)
    return None if ends[0] is None or ends[1] is None else Bounds(ends[0], ends[1])


def _time(estimate: Estimate) -> Bounds | None:
    value = exact_from_text(estimate.value)
    if value is None:
        return None
    return Bounds(value, UNBOUNDED if estimate.lower_bound_only else value)
