"""Which typed body each kind of statement carries, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic import ValidationError

from controller.domain import bodies
from controller.domain.record import Record, field_faults
from controller.domain.statement import Statement, StatementKind
from controller.errors import NotCanonical

R = TypeVar("R", bound=Record)

CLAIMS: Final[Mapping[StatementKind, type[Record]]] = {
    StatementKind.ROUND_FROZEN: bodies.RoundFrozen,
    StatementKind.ROUND_AUTHORIZED: bodies.RoundAuthorized,
    StatementKind.ROUND_STARTED: bodies.RoundStarted,
    StatementKind.ATTEMPT_INTENDED: bodies.AttemptIntended,
    StatementKind.SANDBOX_LEASED: bodies.SandboxLeased,
    StatementKind.ISOLATION_RECEIPT: bodies.IsolationChecked,
    StatementKind.RESULT_ACKNOWLEDGED: bodies.ResultAcknowledged,
    StatementKind.SANDBOX_DESTROYED: bodies.SandboxGone,
    StatementKind.VERDICT: bodies.VerdictReached,
    StatementKind.REQUESTS_REFUSED: bodies.RequestsRefused,
    StatementKind.ATTEMPT_SETTLED: bodies.AttemptSettled,
    StatementKind.ATTEMPT_CLASSIFIED: bodies.AttemptClassified,
    StatementKind.RUN_SCORED: bodies.RunScored,
    StatementKind.CELL_HALTED: bodies.CellHalted,
    StatementKind.OPERATOR_ACT: bodies.OperatorAct,
    StatementKind.ROUND_STOPPED: bodies.RoundStopped,
    StatementKind.RUN_RECONCILED: bodies.RunReconciled,
    StatementKind.RUN_INVALIDATED: bodies.RunInvalidated,
    StatementKind.ROUND_SETTLED: bodies.RoundSettled,
    StatementKind.ROUND_CLOSED: bodies.RoundClosed,
    StatementKind.DISPUTE_FILED: bodies.DisputeFiled,
}


def claim(statement: Statement, kind: type[R]) -> R:
    """The body as a record of the given type. Raises NotCanonical naming statement and field."""
    try:
        return kind.model_validate_json(json.dumps(statement.body))
    except ValidationError as error:
        fault = field_faults(error, whole="the body")[0]
        raise NotCanonical(f"statement {statement.sequence} ({statement.kind.value}): {fault}") from error


def check_claims(statements: tuple[Statement, ...]) -> None:
    """Raises NotCanonical naming the first statement whose body is not what its kind claims."""
    for statement in statements:
        claim(statement, CLAIMS[statement.kind])
