"""Statements of the append-only log. Each names the one before it by digest; none is ever altered or removed."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.record import Record


class StatementKind(StrEnum):
    ROUND_FROZEN = "round-frozen"
    ROUND_AUTHORIZED = "round-authorized"
    ROUND_STARTED = "round-started"
    ATTEMPT_INTENDED = "attempt-intended"
    SANDBOX_LEASED = "sandbox-leased"
    ISOLATION_RECEIPT = "isolation-receipt"
    RESULT_ACKNOWLEDGED = "result-acknowledged"
    SANDBOX_DESTROYED = "sandbox-destroyed"
    VERDICT = "verdict"
    REQUESTS_REFUSED = "requests-refused"
    ATTEMPT_SETTLED = "attempt-settled"
    ATTEMPT_CLASSIFIED = "attempt-classified"
    RUN_SCORED = "run-scored"
    CELL_HALTED = "cell-halted"
    OPERATOR_ACT = "operator-act"
    ROUND_STOPPED = "round-stopped"
    RUN_RECONCILED = "run-reconciled"
    RUN_INVALIDATED = "run-invalidated"
    ROUND_SETTLED = "round-settled"
    ROUND_CLOSED = "round-closed"
    DISPUTE_FILED = "dispute-filed"


class Statement(Record):
    """One claim. `subject` is an attempt, a logical run or the round; `body` is the typed record's JSON (no floats)."""

    sequence: int = Field(ge=0)
    kind: StatementKind
    at: InstantMs
    subject: str
    body: dict[str, Any]
    previous: Digest  # digest of the canonical bytes of the statement before; of nothing for the first
