"""The engine's view of a frozen round: tasks, arms, lanes, repeats. It knows nothing of a protocol.

A protocol's manifest extends `RoundManifest` with what it alone needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from controller.domain.authorization import Caps
from controller.domain.ids import ArmId, Digest, LogicalRunId, Slug, TaskId, logical_run_id
from controller.domain.instant import InstantMs
from controller.domain.keys import PublicKey
from controller.domain.launch import LaunchContract, Shim
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.names import Name
from controller.domain.rate_card import RateCard
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy
from controller.domain.terms import (
    Amendment,
    CleanStart,
    InvalidationRules,
    LanePolicy,
    Machines,
    RetryRule,
    Rubric,
    StopRules,
)
from controller.domain.usage import Dialect

Visibility = Literal["public", "sealed", "holdout"]
REHEARSAL_PROVIDER: Final = "rehearsal"  # the scripted model: lanes of this provider, and no others, make a rehearsal
# Where the meter forwards to; a lane of any other provider can't be frozen.
UPSTREAMS: Final[Mapping[str, str]] = {
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com",
}
Seed = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class SealedContent(Record):
    """What is said of content that nobody may read yet."""

    commitment: Digest  # the task's Merkle leaf hash; salted, so that no guess can be tried on it
    runner_digest: Digest  # ciphertext of what the harness receives
    verifier_digest: Digest  # ciphertext of what the verifier needs


class TaskEntry(Record):
    """One task as frozen: everything that decides its outcome, by digest; of a sealed task, by salted commitment."""

    id: Slug
    title: str
    stratum: Slug
    cluster: Slug  # tasks on the same repository are not independent
    visibility: Visibility
    language: Literal["python", "node"]
    task_digest: Digest | None  # the whole directory
    prompt_digest: Digest | None
    base_digest: Digest | None  # the tree the harness receives
    verifier_digest: Digest | None
    gold_digest: Digest | None
    soundness: Literal["black-box", "in-process"]
    sealed: SealedContent | None = None

    @model_validator(mode="after")
    def _content_is_named_once(self) -> Self:
        plain = (self.task_digest, self.prompt_digest, self.base_digest, self.verifier_digest, self.gold_digest)
        if self.sealed is None and None in plain:
            raise ValueError("a task that is not sealed has all its digests")
        if self.sealed is not None and any(plain):
            raise ValueError("a sealed task has no digest of its content, which could be guessed")
        if self.sealed is not None and self.visibility == "public":
            raise ValueError("a public task is not sealed")
        return self


class Lane(Record):
    """One exact provider-and-model row with fallback off."""

    id: Slug
    provider: Slug
    model: Name  # it stands in every row of the dataset
    observed_models: tuple[str, ...]  # what a response may call it; the cost of anything else is unknown
    rate_tier: str = "standard"


class Arm(Record):
    """What is compared: harness, model and settings, pinned."""

    id: Slug
    title: str
    harness: Slug
    harness_version: str
    adapter_digest: Digest  # of the module that starts it
    image: str
    image_digest: Digest  # the harness's program with everything it needs
    lane: Slug
    dialect: Dialect
    shims: tuple[Shim, ...]
    settings: dict[str, str] = Field(default_factory=dict)
    is_own: bool = False  # ours: if it loses, the report names the winner first


class LogicalRun(Record):
    """One task under one arm at one repeat: the unit of allocation, analysis and the reader's attention."""

    id: str
    task: Slug
    arm: Slug
    replicate: int = Field(ge=1)
    position: int = Field(ge=0)  # in the schedule
    block: int = Field(ge=0)


class RoundManifest(Record):
    """What is fixed for every counted run, and published the moment the round starts."""

    schema_version: Literal["fairtrial.manifest/2"] = "fairtrial.manifest/2"
    protocol: str
    round_id: Slug
    title: str
    kind: Literal["rehearsal", "measured"]
    amends: Amendment | None = None
    frozen_at: InstantMs
    software: str
    software_digest: Digest  # of our whole package: the meter, the result API and the code inside machines are in it
    seed: Seed
    replicates: int = Field(ge=1, le=10)
    corpus_root: Digest  # RFC 6962 root over the tasks in byte order of their ids; see controller.evidence.corpus
    tasks: tuple[TaskEntry, ...] = Field(min_length=1)
    exclusions: tuple[str, ...] = ()  # what was left out before the freeze, and why; nothing is left out after it
    arms: tuple[Arm, ...] = Field(min_length=1)
    launch_contracts: dict[str, LaunchContract]  # by arm, with placeholders for prompt and token
    lanes: tuple[Lane, ...] = Field(min_length=1)
    lane_policy: LanePolicy
    rate_card: RateCard
    rate_card_digest: Digest
    retail_policy: RetailPolicy | None = None
    retail_policy_digest: Digest | None = None
    images: dict[str, Digest]
    machines: Machines = Machines()
    network_policy: str  # the file of flows itself
    network_policy_digest: Digest
    sandbox_limits: SandboxLimits
    spend_limits: SpendLimits
    artifact_limits: ArtifactLimits
    envelope: Caps  # the most that any grant may allow
    clean_start: CleanStart = CleanStart()
    retry: RetryRule = RetryRule()
    rubric: Rubric
    invalidation: InvalidationRules = InvalidationRules()
    stop_rules: StopRules = StopRules()
    approvers: tuple[PublicKey, ...] = ()  # of these persons, one must approve the exact report of a measured round
    schedule: tuple[LogicalRun, ...]

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        found = list(self.faults())
        if found:
            raise ValueError("; ".join(found))
        return self

    def faults(self) -> Iterator[str]:
        """What contradicts itself or is missing, each as `field: fault`. A protocol's manifest adds its own."""
        if sorted(self.launch_contracts) != sorted(arm.id for arm in self.arms):
            yield "launch_contracts: must name every arm and nothing else"
        if sorted(self.lane_policy.upstreams) != sorted({lane.provider for lane in self.lanes}):
            yield "lane_policy.upstreams: must name the provider of every lane and no other"
        for name in (self.machines.runner, self.machines.verifier):
            if name not in self.images:
                yield f"images: {name!r}, the image of a machine, is not among them"
        if (self.retail_policy is None) != (self.retail_policy_digest is None):
            yield "retail_policy_digest: a policy and its digest come together"
        if self.amends is not None and self.amends.round_id == self.round_id:
            yield "amends: an amendment is a round of its own, so it needs a round_id of its own"
        if min(self.envelope.logical_runs, self.envelope.attempts) < len(self.schedule):
            yield f"envelope: does not cover {len(self.schedule)} logical runs"
        if self.kind == "measured" and not self.approvers:
            yield "approvers: a measured round names the persons of whom one must approve its report"

    def arm(self, arm_id: str) -> Arm:
        """The arm of that id; KeyError when the manifest has none."""
        return {arm.id: arm for arm in self.arms}[arm_id]

    def task(self, task_id: str) -> TaskEntry:
        return {task.id: task for task in self.tasks}[task_id]

    def lane(self, lane_id: str) -> Lane:
        return {lane.id: lane for lane in self.lanes}[lane_id]


def cells(
    tasks: tuple[TaskEntry, ...], arms: tuple[Arm, ...], replicates: int
) -> tuple[tuple[TaskId, ArmId, int, LogicalRunId], ...]:
    """Every predeclared logical run, tasks in byte order, then arms, then repeats from 1."""
    return tuple(
        (TaskId(task.id), ArmId(arm.id), replicate, logical_run_id(TaskId(task.id), ArmId(arm.id), replicate))
        for task in sorted(tasks, key=lambda entry: entry.id)
        for arm in sorted(arms, key=lambda entry: entry.id)
        for replicate in range(1, replicates + 1)
    )
