"""The frozen table that analysis reads: one line of JSON per logical run, attempts inside it.

Anyone can analyse their own data in this form; see docs/dataset.md.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from controller.domain.ids import Digest
from controller.domain.money import UsdText
from controller.domain.outcome import EndKind
from controller.domain.provider_report import Figure
from controller.domain.record import Record


class AttemptRow(Record):
    """One attempt, kept whatever came after it."""

    attempt_id: str
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

    schema_version: Literal["fairtrial.dataset/1"] = "fairtrial.dataset/1"
    round_id: str
    manifest_digest: Digest
    kind: Literal["rehearsal", "measured"]
    task: str
    cluster: str
    stratum: str
    visibility: Literal["public", "sealed", "holdout"]
    arm: str
    model: str
    replicate: int = Field(ge=1)
    outcome: Literal["success", "failure", "invalid", "missing"]  # invalid: measurement-invalid, some request unsettled
    currency: Literal["USD"] = "USD"
    usd: UsdText | None  # sum over every attempt; null as soon as one part is unknown
    figure: Figure | None = None  # exact, or estimated: usage was assigned from the provider's report; null without usd
    wall_ms: int | None  # sum over every attempt; null when the run is missing
    attempts: tuple[AttemptRow, ...]
    scored_attempt: int | None  # the number of the attempt whose outcome is the run's
