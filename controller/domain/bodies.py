"""The typed bodies of statements: what each kind claims. Amounts are exact strings, times whole milliseconds."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.outcome import ArtifactRecord, EndKind, Verdict
from controller.domain.provider_report import Figure, Finding, ProviderEvidence, RequestResolved
from controller.domain.record import Record
from controller.domain.terms import InvalidationCause
from controller.errors import Blame


class RoundFrozen(Record):
    """The first statement of every round."""

    manifest_digest: Digest
    corpus_root: Digest


class RoundAuthorized(Record):
    """A signed grant came into force. The newest one holds."""

    manifest_digest: Digest
    authorization_digest: Digest  # of the grant's payload, not of its envelope


class RoundStarted(Record):
    """A controller took the round up. The first epoch is 1; each resume counts one more."""

    manifest_digest: Digest
    authorization_digest: Digest
    epoch: int = Field(ge=1)
    pool: str
    isolation: Literal["vm", "container"]


class AttemptIntended(Record):
    """Written durably before the first outside effect of the attempt."""

    run: str
    number: int = Field(ge=1)
    generation: int = Field(ge=1)
    epoch: int


class SandboxLeased(Record):
    name: str
    role: Literal["runner", "verifier"]
    generation: int
    created_at: InstantMs
    expires_at: InstantMs


class IsolationChecked(Record):
    """The attempt's own isolation receipt by digest, and what was wrong with it (nothing, if it may count)."""

    receipt_digest: Digest | None
    probes_refused: int
    mismatches: tuple[str, ...]


class ResultAcknowledged(Record):
    """Everything the guest left is durable on our side; from here on the sandbox may be destroyed."""

    artifacts: tuple[ArtifactRecord, ...]
    missing: tuple[str, ...]
    wall_ms: int
    end: EndKind
    reason: str
    self_reported_usd: UsdText | None


class SandboxGone(Record):
    name: str
    generation: int
    existed: bool
    proof: str


class VerdictReached(Record):
    verdict: Verdict
    verifier_image: Digest


class RequestsRefused(Record):
    """What the meter refused the attempt, counted by the reasons it gave. Not written for an attempt without any."""

    reasons: dict[str, Annotated[int, Field(ge=1)]]


class AttemptSettled(Record):
    """The meter's account of the attempt. `valid` is false when any accepted request stayed unknown or open."""

    requests: int = Field(ge=0)
    refusals: int = Field(ge=0)
    tokens: dict[str, int]
    usd: UsdText | None
    valid: bool
    problems: tuple[str, ...]
    open_requests: tuple[int, ...] = ()  # in flight when this was written; how they ended later changes nothing here
    off_lane_models: dict[str, int] = Field(default_factory=dict)  # requests that another model answered, by its name


class AttemptClassified(Record):
    """The last word on one attempt."""

    run: str
    number: int
    end: EndKind
    reason: str
    blame: Blame | None
    retryable: bool
    verified: bool | None
    would_have_passed: bool


class RunScored(Record):
    """The one scored outcome of a logical run."""

    outcome: Literal["success", "failure", "invalid"]
    scored_attempt: int
    attempts: int
    usd: UsdText | None


class CellHalted(Record):
    """The controller can neither adopt nor accept this attempt, so it asks instead of spending again."""

    attempt_id: str
    number: int
    reason: str
    requests: int


class OperatorAct(Record):
    """What a person decided, in the log like everything else.

    A stop with an event declares something predeclared that the log can't show, and ends the round; one without is a
    pause, until a resume.
    """

    act: Literal["resolve-lost", "resolve-failed", "stop", "resume"]
    note: str
    attempt_id: str | None = None
    event: str | None = None  # a `StopEvent` that persons declare


class RoundStopped(Record):
    rule: str  # a `StopEvent` that shows in the log, or in the meter
    detail: str


class RunReconciled(Record):
    """The run's records against the provider's report. `accounts` take the place of those its attempts settled with.

    `outcome` is null for a run without a score; `floor_usd` is what is certain, and equals `usd` when that is known.
    """

    provider: ProviderEvidence
    finding: Finding
    problems: tuple[str, ...]
    resolved: tuple[RequestResolved, ...]
    accounts: dict[str, AttemptSettled]
    outcome: Literal["success", "failure", "invalid"] | None
    usd: UsdText | None
    floor_usd: UsdText
    figure: Figure


class RunInvalidated(Record):
    """The logical run is measurement-invalid when the books are closed, whatever its patches did. By attempt."""

    reasons: dict[str, InvalidationCause] = Field(min_length=1)


class RoundSettled(Record):
    """Totals over every attempt. `usd` is null when `figure` is a floor."""

    attempts: int
    requests: int
    usd: UsdText | None
    floor_usd: UsdText
    figure: Figure
    invalid_runs: tuple[str, ...]


class RoundClosed(Record):
    """Nothing more will be run. The counts cover every predeclared logical run."""

    success: int = Field(ge=0)
    failure: int = Field(ge=0)
    invalid: int = Field(ge=0)
    missing: int = Field(ge=0)


DISPUTE_BYTES_MAX: Final = 64 * 2**10  # a dispute is a text for people; what it refers to is published elsewhere


class DisputeFiled(Record):
    """Somebody contests the round, a logical run or an attempt, which the subject names. May follow the closing.

    The text is a file of the bundle, byte for byte as it was handed in, with whatever signature its author gave it.
    """

    by: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
    text_digest: Digest
