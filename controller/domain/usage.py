"""What the meter knows of one request: accepted before it was forwarded, settled exactly once."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from controller.domain.ids import AttemptId, Digest, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.rate_card import TokenClass
from controller.domain.record import Record

Dialect = Literal["anthropic", "openai_chat", "openai_responses", "gemini"]


class RequestState(StrEnum):
    """ACCEPTED and SENT are open; the other three are final. UNKNOWN makes the logical run measurement-invalid."""

    ACCEPTED = "accepted"
    SENT = "sent"
    SETTLED = "settled"
    ZERO_BILL = "zero_bill"
    UNKNOWN = "unknown"

    @property
    def is_open(self) -> bool:
        return self in (RequestState.ACCEPTED, RequestState.SENT)


class ZeroBillProof(StrEnum):
    """The three named kinds of proof that an accepted request cost nothing."""

    DOCUMENTED_RULE = "documented_rule"
    PROVIDER_USAGE_REPORT = "provider_usage_report"
    NEVER_SENT = "never_sent"


class Usage(Record):
    """Disjoint billable classes of one request, in tokens, and counted units such as web searches."""

    tokens: dict[TokenClass, int]
    units: dict[str, int] = Field(default_factory=dict)


class MeteredRequest(Record):
    """One row of the ledger as evidence. `usd` is exact; it is null until the request is final, and when unknown."""

    request_id: RequestId
    attempt_id: AttemptId
    logical_run_id: LogicalRunId
    sequence: int = Field(ge=1)
    dialect: Dialect
    model: str
    state: RequestState
    accepted_at: InstantMs
    ended_at: InstantMs | None
    status: int | None
    body_digest: Digest
    provider_message_id: str | None
    observed_model: str | None
    usage: Usage | None
    usd: UsdText | None
    zero_bill_proof: ZeroBillProof | None
    note: str
    counts: bool = True  # False for count_tokens, which is free and outside the 60
    served_tier: str | None = None  # these three choose the price row; null until an answer was read
    served_speed: str | None = None
    served_geo: str | None = None


class Refusal(Record):
    """A request the meter did not forward. Limit refusals end the attempt as a hard-limit failure."""

    attempt_id: AttemptId | None
    at: InstantMs
    reason: str
    status: int
    limit: bool


class AttemptAccount(Record):
    """Everything the meter will say about one attempt."""

    attempt_id: AttemptId
    requests: tuple[MeteredRequest, ...]
    refusals: tuple[Refusal, ...]
    open: bool
