"""The frozen table that analysis reads: one line of JSON per logical run, attempts inside it.

Anyone can analyse their own data in this form; see docs/dataset.md.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from controller.domain.ids import Digest
from controller.domain.money import UsdText
from controller.domain.names import Name
from controller.domain.outcome import CUT_SHORT, EndKind
from controller.domain.provider_report import Figure
from controller.domain.record import Record

ChargeKind = Literal["tool", "compute", "human_verification", "allocated_shared"]
Challenge = Literal["tamper", "incomplete", "substitution", "crash"]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
USD: Final = "USD"


class Charge(Record):
    """A settled charge beside the metered model cost, which stands in `usd` and is never repeated here."""

    id: Name  # of the ledger's line: one that comes twice in a dataset was counted twice
    kind: ChargeKind
    amount: UsdText | None  # null: not settled, which is not zero
    currency: Currency


class Proofs(Record):
    """What was proven of one logical run beside its verdict; null is not known, and is no proof."""

    observed_model: bool | None  # every answer named a model of the frozen candidates
    receipt: bool | None  # the execution receipt was verified


class AttemptRow(Record):
    """One attempt, kept whatever came after it."""

    attempt_id: Name
    number: int = Field(ge=1)
    end: EndKind
    reason: str
    wall_ms: int = Field(ge=0)  # harness wall time, not boot or verification
    usd: UsdText | None  # null: unknown, which is not zero
    requests: int = Field(ge=0)
    turns: int | None
    tool_calls: int | None
    tokens: dict[str, int]  # by billable class
    self_reported_usd: UsdText | None
    verified: bool | None  # null when no patch was verified
    would_have_passed: bool


class LogicalRunRow(Record):
    """One predeclared logical run. Anything but `success` is not a success; rows are never dropped."""

    schema_version: Literal["fairtrial.dataset/1", "fairtrial.dataset/2"] = "fairtrial.dataset/1"
    round_id: Name
    manifest_digest: Digest
    kind: Literal["rehearsal", "measured"]
    task: Name
    cluster: Name
    stratum: Name
    visibility: Literal["public", "sealed", "holdout"]
    arm: Name
    model: Name
    replicate: int = Field(ge=1)
    outcome: Literal["success", "failure", "invalid", "missing"]  # invalid: measurement-invalid, some request unsettled
    currency: Currency = USD  # of every `usd` in the row
    usd: UsdText | None  # sum over every attempt; null as soon as one part is unknown
    figure: Figure | None = None  # exact, or estimated: usage was assigned from the provider's report; null without usd
    wall_ms: int | None  # sum over every attempt; null when the run is missing
    attempts: tuple[AttemptRow, ...]
    scored_attempt: int | None  # the number of the attempt whose outcome is the run's
    # Version 2 adds what follows and other currencies; a row that has none of it reads and writes as before.
    latency_ms: int | None = Field(default=None, ge=0, exclude_if=lambda value: value is None)
    charges: tuple[Charge, ...] = Field(default=(), exclude_if=lambda value: not value)
    proofs: Proofs | None = Field(default=None, exclude_if=lambda value: value is None)
    challenge: Challenge | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def is_censored(self) -> bool:
        """True when the run's last attempt was cut short, so that its time is only a lower bound."""
        return bool(self.attempts) and self.attempts[-1].end in CUT_SHORT

    @property
    def scored(self) -> AttemptRow | None:
        """The attempt whose outcome is the run's; None when there is none."""
        return next((attempt for attempt in self.attempts if attempt.number == self.scored_attempt), None)
