"""The frozen plan, as far as it decides a number, and what follows from it alone.

Fields that decide nothing here are left to `fairtrial check`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple

from .canonical import dumps
from .merkle import leaf_hash, root, sha256_digest
from .rates import Card, Lane, check_card
from .refusal import Refused
from .shapes import Between, Digest, Partial, Positive, Slug, Usd, Whole, read
from .signatures import PublicKey, check_ids
from .stops import StopRules

REHEARSAL_PROVIDER = "rehearsal"
ATTEMPTS_MAX = 3
Seed = Annotated[str, re.compile(r"[0-9a-f]{64}")]


@dataclass(frozen=True)
class Sealed(Partial):
    """What stands for content that nobody may read yet: a leaf hash that was made with a salt."""

    commitment: Digest


@dataclass(frozen=True)
class Task(Partial):
    """One task, by the digest of its content, or by the commitment to it."""

    id: Slug
    stratum: Slug
    cluster: Slug
    visibility: Literal["public", "sealed", "holdout"]
    task_digest: Optional[Digest]
    sealed: Optional[Sealed] = None

    @property
    def leaf_hash(self) -> bytes:
        """Of the task in the tree of the corpus. Raises Refused unless exactly one thing names the content."""
        if (self.task_digest is None) == (self.sealed is None) or (self.sealed and self.visibility == "public"):
            raise Refused(f"task {self.id}: its content has one digest, or if it is not public one commitment")
        if self.sealed is not None:
            return bytes.fromhex(self.sealed.commitment[len("sha256:") :])
        return leaf_hash(dumps({"id": self.id, "task_digest": self.task_digest}))


@dataclass(frozen=True)
class Arm(Partial):
    """What is compared."""

    id: Slug
    lane: Slug
    is_own: bool = False


@dataclass(frozen=True)
class Run:
    """One logical run of the schedule."""

    id: str
    task: Slug
    arm: Slug
    replicate: Positive
    position: Whole
    block: Whole


@dataclass(frozen=True)
class SandboxLimits(Partial):
    """The time an attempt may take."""

    agent_seconds: Annotated[int, Between(1, 1800)] = 1800


@dataclass(frozen=True)
class SpendLimits(Partial):
    """What an attempt and a logical run may use."""

    requests_per_attempt: Annotated[int, Between(1, 60)] = 60
    requests_per_logical_run: Annotated[int, Between(1, 180)] = 180
    usd_per_attempt: Usd = "1.00"
    usd_per_logical_run: Usd = "3.00"


@dataclass(frozen=True)
class Caps:
    """The most a round may use."""

    logical_runs: Positive
    attempts: Positive
    requests: Positive
    usd: Usd
    timeout_minutes: Positive


@dataclass(frozen=True)
class Machines(Partial):
    """The machine images by their names."""

    verifier: Slug = "vm-verifier"


@dataclass(frozen=True)
class Rubric(Partial):
    """The gates that a verdict passes, in order."""

    gates: Tuple[str, ...]


@dataclass(frozen=True)
class Plan(Partial):
    """The manifest of any protocol."""

    protocol: str
    round_id: Slug
    kind: Literal["rehearsal", "measured"]
    seed: Seed
    replicates: Annotated[int, Between(1, 10)]
    corpus_root: Digest
    tasks: Tuple[Task, ...]
    arms: Tuple[Arm, ...]
    lanes: Tuple[Lane, ...]
    rate_card: Card
    rate_card_digest: Digest
    network_policy: str
    network_policy_digest: Digest
    images: Dict[str, Digest]
    envelope: Caps
    rubric: Rubric
    sandbox_limits: SandboxLimits
    spend_limits: SpendLimits
    stop_rules: StopRules
    schedule: Tuple[Run, ...]
    machines: Machines = Machines()
    approvers: Tuple[PublicKey, ...] = ()
    retail_policy: Any = None
    retail_policy_digest: Optional[Digest] = None
    schema_version: Literal["fairtrial.manifest/2"] = "fairtrial.manifest/2"

    def lane_of(self, arm_id: str) -> Lane:
        """The lane that an arm runs on."""
        arm = next(arm for arm in self.arms if arm.id == arm_id)
        return next(lane for lane in self.lanes if lane.id == arm.lane)


def read_plan(value: Any, where: str) -> Plan:
    """The plan of a parsed manifest. Raises Refused when its parts do not belong together."""
    plan = read(Plan, value, where)
    for kind, ids in (
        ("task", [task.id for task in plan.tasks]),
        ("arm", [arm.id for arm in plan.arms]),
        ("lane", [lane.id for lane in plan.lanes]),
    ):
        if not ids or len(set(ids)) != len(ids):
            raise Refused(f"{where}: no {kind}, or one {kind} twice")
    if not {arm.lane for arm in plan.arms} <= {lane.id for lane in plan.lanes}:
        raise Refused(f"{where}: an arm runs on a lane that is not in the plan")
    if plan.machines.verifier not in plan.images:
        raise Refused(f"{where}: the verifier's image is not among the images")
    check_card(plan.rate_card)
    check_ids(plan.approvers, where)
    return plan


def check_commitments(plan: Plan, manifest: Dict[str, Any]) -> str:
    """(3) Corpus root and the digests of prices, terms and network policy follow from what they commit to."""
    corpus = f"sha256:{root([task.leaf_hash for task in by_id(plan.tasks)]).hex()}"
    if plan.corpus_root != corpus:
        raise Refused(f"corpus root is {plan.corpus_root}, but the tasks give {corpus}")
    retail = plan.retail_policy
    for name, said, found in (
        ("rate card", plan.rate_card_digest, sha256_digest(dumps(manifest["rate_card"]))),
        ("retail policy", plan.retail_policy_digest, None if retail is None else sha256_digest(dumps(retail))),
        ("network policy", plan.network_policy_digest, sha256_digest(plan.network_policy.encode())),
    ):
        if said != found:
            raise Refused(f"{name} digest is {said}, but the {name} gives {found}")
    return f"{len(plan.tasks)} tasks under {corpus}; rate card {plan.rate_card.name[:80]!r}"


def by_id(items: Any) -> List[Any]:
    """The tasks or arms in byte order of their ids."""
    return sorted(items, key=lambda item: item.id.encode())


def run_id(task: str, arm: str, replicate: int) -> str:
    """The name of a logical run."""
    return f"{task}.{arm}.r{replicate}"


def attempt_id(manifest_digest: str, run: str, number: int) -> str:
    """The name of an attempt, which follows from the plan."""
    return f"att-{hashlib.sha256(f'{manifest_digest}|{run}|a{number}'.encode()).hexdigest()[:20]}-{number}"
