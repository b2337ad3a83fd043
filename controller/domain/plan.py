"""The engine's view of a frozen round: tasks, arms, lanes, repeats. It knows nothing of a protocol.

A protocol's manifest extends `RoundManifest` with what it alone needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from controller.domain.ids import ArmId, Digest, LogicalRunId, Slug, TaskId, logical_run_id
from controller.domain.instant import InstantMs
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.names import Name
from controller.domain.rate_card import RateCard
from controller.domain.record import Record
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
    image: str
    image_digest: Digest
    lane: Slug
    dialect: Dialect
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
    """What is fixed for every counted run."""

    schema_version: Literal["fairtrial.manifest/1"] = "fairtrial.manifest/1"
    protocol: str
    round_id: Slug
    title: str
    kind: Literal["rehearsal", "measured"]
    frozen_at: InstantMs
    software: str
    seed: Seed
    replicates: int = Field(ge=1, le=10)
    corpus_root: Digest  # RFC 6962 root over the tasks in byte order of their ids; see controller.evidence.corpus
    tasks: tuple[TaskEntry, ...] = Field(min_length=1)
    arms: tuple[Arm, ...] = Field(min_length=1)
    lanes: tuple[Lane, ...] = Field(min_length=1)
    rate_card: RateCard
    rate_card_digest: Digest
    images: dict[str, Digest]
    network_policy_digest: Digest
    sandbox_limits: SandboxLimits
    spend_limits: SpendLimits
    artifact_limits: ArtifactLimits
    schedule: tuple[LogicalRun, ...]

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
