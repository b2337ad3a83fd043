"""What each kind of statement claims. docs/bundle-format.md says what every field means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, Literal, Optional, Tuple, Type

from .rates import Usage
from .shapes import Digest, Positive, Usd, Whole

End = Literal["normal", "harness_crash", "timeout", "hard_limit", "provider_error", "infrastructure", "written_off"]
Outcome = Literal["success", "failure", "invalid"]
Figure = Literal["exact", "floor", "estimated"]
Finding = Literal["not-compared", "agrees", "assigned", "provider-more", "provider-less", "off-lane"]
Proof = Literal["documented_rule", "provider_usage_report", "never_sent"]
InvalidReason = Literal["model-off-lane", "request-in-flight", "request-unknown", "usage-report-refutes", "not-retried"]
Blame = Literal["harness", "task", "sandbox", "provider", "controller", "operator", "machine", "evidence"]


@dataclass(frozen=True)
class RoundFrozen:
    manifest_digest: Digest
    corpus_root: Digest


@dataclass(frozen=True)
class RoundAuthorized:
    manifest_digest: Digest
    authorization_digest: Digest


@dataclass(frozen=True)
class RoundStarted:
    manifest_digest: Digest
    authorization_digest: Digest
    epoch: Positive
    pool: str
    isolation: Literal["vm", "container"]


@dataclass(frozen=True)
class AttemptIntended:
    run: str
    number: Positive
    generation: Positive
    epoch: int


@dataclass(frozen=True)
class SandboxLeased:
    name: str
    role: Literal["runner", "verifier"]
    generation: int
    created_at: int
    expires_at: int


@dataclass(frozen=True)
class IsolationChecked:
    receipt_digest: Optional[Digest]
    probes_refused: int
    mismatches: Tuple[str, ...]


@dataclass(frozen=True)
class Artifact:
    name: str
    digest: Digest
    bytes: int
    received_at: int


@dataclass(frozen=True)
class ResultAcknowledged:
    artifacts: Tuple[Artifact, ...]
    missing: Tuple[str, ...]
    wall_ms: Whole
    end: End
    reason: str
    self_reported_usd: Optional[Usd]


@dataclass(frozen=True)
class SandboxGone:
    name: str
    generation: int
    existed: bool
    proof: str


@dataclass(frozen=True)
class Gate:
    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class VerifierOutput:
    exit_code: Optional[int]
    cases: int
    passed: int
    failed: Tuple[str, ...]
    report_bytes: int
    report_digest: Digest


@dataclass(frozen=True)
class Verdict:
    passed: bool
    gates: Tuple[Gate, ...]
    patch_digest: Optional[Digest]
    changed_paths: Tuple[str, ...]
    soundness: Literal["black-box", "in-process"]
    output: Optional[VerifierOutput] = None


@dataclass(frozen=True)
class VerdictReached:
    verdict: Verdict
    verifier_image: Digest


@dataclass(frozen=True)
class RequestsRefused:
    reasons: Dict[str, Positive]


@dataclass(frozen=True)
class AttemptSettled:
    requests: Whole
    refusals: Whole
    tokens: Dict[str, int]
    usd: Optional[Usd]
    valid: bool
    problems: Tuple[str, ...]
    open_requests: Tuple[int, ...] = ()
    off_lane_models: Dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AttemptClassified:
    run: str
    number: int
    end: End
    reason: str
    blame: Optional[Blame]
    retryable: bool
    verified: Optional[bool]
    would_have_passed: bool


@dataclass(frozen=True)
class RunScored:
    outcome: Outcome
    scored_attempt: int
    attempts: int
    usd: Optional[Usd]


@dataclass(frozen=True)
class CellHalted:
    attempt_id: str
    number: int
    reason: str
    requests: int


@dataclass(frozen=True)
class OperatorAct:
    act: Literal["resolve-lost", "resolve-failed", "stop", "resume"]
    note: str
    attempt_id: Optional[str] = None
    event: Optional[str] = None


@dataclass(frozen=True)
class RoundStopped:
    rule: str
    detail: str


@dataclass(frozen=True)
class ReportedUsage:
    minute: int
    model: str
    tier: Optional[str]
    speed: Optional[str]
    geo: Optional[str]
    usage: Usage
    requests: Optional[Whole]


@dataclass(frozen=True)
class ReportedSpan:
    from_at: int
    until_at: int


@dataclass(frozen=True)
class ProviderEvidence:
    reports: Tuple[Digest, ...]
    covered: Tuple[ReportedSpan, ...]
    dedicated: bool
    usage: Tuple[ReportedUsage, ...]


@dataclass(frozen=True)
class RequestResolved:
    attempt_id: str
    sequence: Positive
    proof: Optional[Proof]
    assigned: Optional[Usage]
    usd: Usd


@dataclass(frozen=True)
class RunReconciled:
    provider: ProviderEvidence
    finding: Finding
    problems: Tuple[str, ...]
    resolved: Tuple[RequestResolved, ...]
    accounts: Dict[str, AttemptSettled]
    outcome: Optional[Outcome]
    usd: Optional[Usd]
    floor_usd: Usd
    figure: Figure


@dataclass(frozen=True)
class RunInvalidated:
    reasons: Dict[str, InvalidReason]


@dataclass(frozen=True)
class RoundSettled:
    attempts: int
    requests: int
    usd: Optional[Usd]
    floor_usd: Usd
    figure: Figure
    invalid_runs: Tuple[str, ...]


@dataclass(frozen=True)
class RoundClosed:
    success: Whole
    failure: Whole
    invalid: Whole
    missing: Whole


@dataclass(frozen=True)
class DisputeFiled:
    by: Annotated[str, re.compile(r"[^\x00-\x1f\x7f]{1,200}")]
    text_digest: Digest


KINDS: Dict[str, Type[Any]] = {
    "round-frozen": RoundFrozen,
    "round-authorized": RoundAuthorized,
    "round-started": RoundStarted,
    "attempt-intended": AttemptIntended,
    "sandbox-leased": SandboxLeased,
    "isolation-receipt": IsolationChecked,
    "result-acknowledged": ResultAcknowledged,
    "sandbox-destroyed": SandboxGone,
    "verdict": VerdictReached,
    "requests-refused": RequestsRefused,
    "attempt-settled": AttemptSettled,
    "attempt-classified": AttemptClassified,
    "run-scored": RunScored,
    "cell-halted": CellHalted,
    "operator-act": OperatorAct,
    "round-stopped": RoundStopped,
    "run-reconciled": RunReconciled,
    "run-invalidated": RunInvalidated,
    "round-settled": RoundSettled,
    "round-closed": RoundClosed,
    "dispute-filed": DisputeFiled,
}
