"""What cost-index freezes beside the engine's plan: sizes of the cohort, boundary of spend, uncertainty protocol.

Outcomes are the strata of the tasks, stacks are the arms, instances are tasks and their repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from pydantic import Field, ValidationError

from controller.domain.dataset import USD, ChargeKind, Currency
from controller.domain.ids import Digest, Slug
from controller.domain.instant import instant_text
from controller.domain.plan import RoundManifest, TaskEntry
from controller.domain.record import Record, field_faults
from controller.domain.stream import GENERATOR
from controller.protocols.cost_index.plan import (
    METHODOLOGY,
    OUTCOMES,
    RESAMPLES,
    STACKS,
    Conversion,
    CostIndexPlan,
    CountedKind,
    Instance,
    OutcomeEntry,
)

KINDS: Final[tuple[ChargeKind, ...]] = ("tool", "compute", "human_verification", "allocated_shared")


class SpendBoundary(Record):
    """Which charges are counted, in which currency. Every other kind is named with the reason why it is not."""

    counted: tuple[CountedKind, ...] = ("model",)
    uncounted: dict[ChargeKind, str]
    currency: Currency = USD
    conversions: tuple[Conversion, ...] = ()


class Uncertainty(Record):
    """How intervals at 95 % are made, fixed before the first outcome."""

    level_percent: Literal[95] = 95
    independent_rates: Literal["wilson"] = "wilson"  # when every instance is a cluster of its own
    wilson_z: Literal["1.959963984540054"] = "1.959963984540054"
    otherwise: Literal["paired-cluster-bootstrap"] = "paired-cluster-bootstrap"  # and for costs always
    generator: Literal["shake128-mulshift64/v1"] = GENERATOR
    resamples: int = Field(default=RESAMPLES, ge=100, le=1_000_000)
    bounds: Literal["nearest-rank"] = "nearest-rank"  # of 2.5 % and 97.5 %
    without_success: Literal["kept as infinite"] = "kept as infinite"
    clusters_min: Literal[2] = 2  # below, no resampling interval is claimed


class CostIndexManifest(RoundManifest):
    """The complete plan of a cost-index round. A rehearsal may be smaller; a measured round may not."""

    protocol: Literal["cost-index"] = "cost-index"
    methodology: Literal["1.0"] = METHODOLOGY
    boundary: SpendBoundary
    uncertainty: Uncertainty = Uncertainty()
    sample_sizes: dict[Slug, int]  # task instances by outcome
    fixtures: dict[Slug, Digest]  # by task, what only its evaluator holds; a sealed task's is in its commitment

    @property
    def plan(self) -> CostIndexPlan:
        """The cohort and the boundary, as the analysis reads them. Raises ValidationError for an unsound one."""
        return CostIndexPlan(
            frozen_on=instant_text(self.frozen_at)[:10],
            seed=self.seed,
            outcomes=tuple(_outcomes(self.tasks, self.replicates)),
            stacks=tuple(arm.id for arm in self.arms),
            currency=self.boundary.currency,
            conversions=self.boundary.conversions,
            counted=self.boundary.counted,
            exclusions=(
                *self.exclusions,
                *(f"{kind} charges: {why}" for kind, why in sorted(self.boundary.uncounted.items())),
            ),
        )

    def faults(self) -> Iterator[str]:
        """Where the manifest contradicts itself or the protocol, each as `field: fault`."""
        yield from super().faults()
        if sorted(self.boundary.uncounted) != sorted(set(KINDS) - set(self.boundary.counted)):
            yield "boundary.uncounted: must say of every kind of charge that is not counted why it is not"
        if self.sample_sizes != sample_sizes(self.tasks, self.replicates):
            yield "sample_sizes: differ from the tasks and repeats"
        if sorted(self.fixtures) != sorted(task.id for task in self.tasks if task.sealed is None):
            yield "fixtures: must name every task but the sealed ones"
        stacks = {(arm.harness, arm.lane, tuple(sorted(arm.settings.items()))) for arm in self.arms}
        if len(stacks) < len(self.arms):
            yield "arms: two stacks are the same harness, lane and settings"
        try:
            _ = self.plan
        except ValidationError as error:
            yield from field_faults(error, whole="plan")
        if self.kind == "measured":
            sizes = (len(self.sample_sizes), len(self.arms))
            if sizes != (OUTCOMES, STACKS):
                yield f"tasks, arms: {sizes[0]} outcomes and {sizes[1]} stacks, not {OUTCOMES} and {STACKS}"
            if self.uncertainty.resamples != RESAMPLES:
                yield "uncertainty.resamples: fixed by the protocol for measured rounds"


def sample_sizes(tasks: Sequence[TaskEntry], replicates: int) -> dict[str, int]:
    """Task instances by outcome: repeated seeds of a task are further instances of its cluster."""
    return {outcome: count * replicates for outcome, count in sorted(Counter(task.stratum for task in tasks).items())}


def _outcomes(tasks: Sequence[TaskEntry], replicates: int) -> Iterator[OutcomeEntry]:
    for outcome in sorted({task.stratum for task in tasks}):
        yield OutcomeEntry(
            id=outcome,
            instances=tuple(
                Instance(task=task.id, cluster=task.cluster, replicates=replicates)
                for task in tasks
                if task.stratum == outcome
            ),
        )
