"""What optimizer-matrix freezes beside the engine's plan: policies and their executors, inputs, thresholds, selection.

Scenarios are the tasks, repositories their clusters, categories their strata; policies are the arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field, ValidationError

from controller.domain.authorization import Caps
from controller.domain.ids import Digest, Slug
from controller.domain.plan import RoundManifest, TaskEntry
from controller.domain.record import Record, field_faults
from controller.evidence.corpus import corpus_root
from controller.protocols.optimizer_matrix import gates
from controller.protocols.optimizer_matrix.candidate import DrawnHoldout
from controller.protocols.optimizer_matrix.plan import FROZEN_SHAPE, OptimizerPlan, Roles, Scenario, Selection, Shape

RUNTIME_FAMILIES: Final = 2
TIERS: Final = 3
ATTEMPTS_MAX: Final = 162  # of the approved envelope of the 120-cell matrix
TIMEOUT_MINUTES_MAX: Final = 7_230
Routing = Literal["fixed", "prompt", "probe"]  # one executor; chosen by the task's text; by text and a bounded probe


class Candidate(Record):
    """One candidate executor: a harness on a lane. Every policy is offered the same set."""

    id: Slug
    harness: Slug  # the runtime family
    lane: Slug
    tier: Slug  # of capability
    billing_basis: str = Field(min_length=1)  # what its costs are, such as official list prices


class PolicyEntry(Record):
    """How an arm chooses its executor."""

    arm: Slug
    routing: Routing


class ProbeBoundary(Record):
    """What a probing policy may look at before it chooses. It calls no model and follows no link."""

    files_max: int = Field(ge=1, le=100_000)
    bytes_max: int = Field(ge=1, le=2**30)
    duration_ms_max: int = Field(ge=1, le=600_000)
    directories: Literal["real"] = "real"
    model_calls_max: Literal[0] = 0
    reads: tuple[str, ...] = (
        "package manifests",
        "test commands",
        "language mix",
        "presence of CI and tests",
        "task-relevant file names",
    )


class Thresholds(Record):
    """The preregistered gates, in percent."""

    absolute_completion: Literal[80] = gates.ABSOLUTE_PERCENT
    relative_completion: Literal[95] = gates.RELATIVE_PERCENT
    frontier_stratum: Literal[70] = gates.STRATUM_PERCENT
    total_saving: Literal[30] = gates.FUNDED_SAVING_PERCENT
    held_out_median_saving: Literal[20] = gates.HISTORICAL_SAVING_PERCENT
    false_passes_max: Literal[0] = 0
    unknown_cost: Literal["saves nothing"] = "saves nothing"


class InputSet(Record):
    """Scenarios that were used before the matrix, with the root over them. They are archived, and none is in it."""

    root: Digest
    tasks: tuple[TaskEntry, ...]


class OptimizerMatrixManifest(RoundManifest):
    """The complete plan of an optimizer-matrix round. A rehearsal may be smaller; a measured round may not."""

    protocol: Literal["optimizer-matrix"] = "optimizer-matrix"
    candidates: tuple[Candidate, ...] = Field(min_length=1)
    policies: tuple[PolicyEntry, ...]
    roles: Roles = Roles()
    strata: tuple[Slug, ...]  # preregistered categories
    thresholds: Thresholds = Thresholds()
    probe: ProbeBoundary
    calibration: InputSet
    pilot: InputSet
    selection: DrawnHoldout | None = None

    @property
    def plan(self) -> OptimizerPlan:
        """The matrix, as the analysis reads it. Raises ValidationError for an unsound one."""
        chosen = self.selection
        return OptimizerPlan(
            scenarios=tuple(
                Scenario(
                    id=task.id, repository=task.cluster, category=task.stratum, holdout=task.visibility == "holdout"
                )
                for task in self.tasks
            ),
            policies=tuple(arm.id for arm in self.arms),
            repetitions=self.replicates,
            roles=self.roles,
            selection=chosen and Selection(scenario=chosen.scenario, record_digest=chosen.record_digest),
            billing_basis={candidate.id: candidate.billing_basis for candidate in self.candidates},
        )

    def faults(self) -> Iterator[str]:
        """Where the manifest contradicts itself or the protocol, each as `field: fault`."""
        yield from super().faults()
        if [policy.arm for policy in self.policies] != [arm.id for arm in self.arms]:
            yield "policies: must name every arm once, in byte order"
        lanes = {lane.id for lane in self.lanes}
        for candidate in self.candidates:
            if candidate.lane not in lanes:
                yield f"candidates: {candidate.id}: there is no lane {candidate.lane!r}"
        offered = {(candidate.harness, candidate.lane) for candidate in self.candidates}
        for arm in self.arms:
            if (arm.harness, arm.lane) not in offered:
                yield f"candidates: none is {arm.harness} on {arm.lane}, which the policy {arm.id} uses"
        if self.strata != tuple(sorted({task.stratum for task in self.tasks})):
            yield "strata: must be those of the scenarios, in byte order"
        held_out = {task.id for task in self.tasks if task.visibility == "holdout"}
        for name, inputs in (("calibration", self.calibration), ("pilot", self.pilot)):
            if inputs.root != corpus_root(inputs.tasks):
                yield f"{name}.root: does not follow from its tasks"
            if leaked := sorted(held_out & {task.id for task in inputs.tasks}):
                yield f"{name}.tasks: {', '.join(leaked)}: a holdout may not be seen before the matrix"
        try:
            shape = self.plan.shape
        except ValidationError as error:
            yield from field_faults(error, whole="plan")
            return
        if self.kind == "measured":
            yield from self._measured_faults(shape)

    def _measured_faults(self, shape: Shape) -> Iterator[str]:
        if shape != FROZEN_SHAPE:
            yield f"tasks, arms: the frozen shape is {_told(FROZEN_SHAPE)}, not {_told(shape)}"
        families, tiers = {one.harness for one in self.candidates}, {one.tier for one in self.candidates}
        if (len(families), len(tiers)) != (RUNTIME_FAMILIES, TIERS):
            found = f"{len(families)} runtime families and {len(tiers)} tiers"
            yield f"candidates: {found}, not {RUNTIME_FAMILIES} and {TIERS}"
        routing = {policy.arm: policy.routing for policy in self.policies}
        for role, wanted in (("adaptive", "probe"), ("frontier", "fixed"), ("prompt_only", "prompt")):
            arm = getattr(self.roles, role)
            if routing.get(arm) != wanted:
                yield f"policies: {arm} is the {role} policy, whose routing is {wanted!r}"
        for name, inputs in (("calibration", self.calibration), ("pilot", self.pilot)):
            if not inputs.tasks:
                yield f"{name}.tasks: a measured round keeps the scenarios of its {name}"
        if self.selection is None:
            yield "selection: the holdout is selected by public randomness before a measured matrix"
        caps = self.envelope
        allowed = (FROZEN_SHAPE.runs, ATTEMPTS_MAX, TIMEOUT_MINUTES_MAX)
        if any(ours > most for ours, most in zip(_sizes(caps), allowed, strict=True)):
            yield f"envelope: {_sizes(caps)} cells, attempts and minutes exceed the approved {allowed}"


def _sizes(caps: Caps) -> tuple[int, int, int]:
    return caps.logical_runs, caps.attempts, caps.timeout_minutes


def _told(shape: Shape) -> str:
    return ", ".join(f"{count} {name}" for name, count in shape.model_dump().items())
