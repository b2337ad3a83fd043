"""What an optimizer-matrix analysis says, as records that serialise without floats.

Exact values are strings ("a/b", "a", "unbounded"). A condition that cannot be decided has `passed` null, and never
passes a gate.
"""

from __future__ import annotations

from typing import Literal

from controller.domain.dataset import Challenge, Currency
from controller.domain.ids import Digest
from controller.domain.record import Record
from controller.protocols.optimizer_matrix.plan import Shape


class Costs(Record):
    """Costs of some runs. `total`, `median` and `per_verified` are null unless every run's cost is known."""

    runs: int
    unknown: int  # runs whose cost is unknown
    all_known: bool
    known_total: str  # what is known of it: no comparison uses it
    total: str | None
    median: str | None  # the mean of the middle two
    per_verified: str | None  # total over verified completions; "unbounded" without one
    shown: str


class Stratum(Record):
    stratum: str
    runs: int
    verified: int


class HeldOut(Record):
    """The runs on held-out scenarios."""

    runs: int
    verified: int
    costs: Costs


class Policy(Record):
    """One policy over the whole matrix. A run is verified when all four of its conditions hold."""

    policy: str
    role: Literal["adaptive", "always-frontier", "prompt-only", "other"]
    runs: int
    attempts: int
    verified: int
    unproven: int  # marked a success, without a proof of the observed model or of the receipt
    failures: int
    invalid: int
    costs: Costs
    held_out: HeldOut
    strata: tuple[Stratum, ...]


class Condition(Record):
    """One comparison of integers or exact costs, as it was made."""

    name: str
    passed: bool | None
    detail: str


class GateResult(Record):
    """A gate: it passes when every condition does."""

    name: Literal["frontier-validity", "funded-target", "historical-gate"]
    passed: bool
    conditions: tuple[Condition, ...]


class FalsePasses(Record):
    """Planted cases, which must not pass. The bounds are Wilson's at 95 % for the rate of false passes."""

    cases: int
    false_passes: int
    by_kind: dict[Challenge, tuple[int, int]]  # cases, false passes
    lines: tuple[str, ...]  # of the false passes
    low: str | None
    high: str | None
    shown: str


class EvidenceStep(Record):
    """One step of the evidence ladder. A dataset alone cannot show every step."""

    number: int
    name: str
    shown: bool
    detail: str


class OptimizerAnalysis(Record):
    """The whole result: a pure function of the dataset and the frozen plan. Nothing is drawn."""

    schema_version: Literal["fairtrial.optimizer-matrix/1"] = "fairtrial.optimizer-matrix/1"
    protocol: Literal["optimizer-matrix"] = "optimizer-matrix"
    round_id: str
    kind: Literal["rehearsal", "measured"]
    manifest_digest: Digest
    plan_digest: Digest | None
    shape: Shape
    frozen_shape: Shape
    currency: Currency
    billing_basis: dict[str, str]  # as the plan says; costs of different bases are added as they stand
    policies: tuple[Policy, ...]
    frontier: GateResult
    funded: GateResult  # prompt-only has no part in it
    historical: GateResult
    prompt_only: tuple[Condition, ...]  # the diagnostic
    held_out_lost: tuple[str, ...]  # verified under always-frontier, and not under adaptive
    held_out_gained: tuple[str, ...]
    false_passes: FalsePasses
    ladder: tuple[EvidenceStep, ...]
    step_reached: int  # 0: none
    conclusion: str
    limitations: tuple[str, ...]

    def policy(self, name: str) -> Policy:
        """The policy of that name; KeyError when there is none."""
        return {one.policy: one for one in self.policies}[name]
