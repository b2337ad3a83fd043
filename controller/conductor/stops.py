"""Predeclared stop rules, watched in the log. A round never stops because of who is winning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.conductor.history import body_of
from controller.domain import bodies
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind

EXCUSED: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.PROVIDER_ERROR})
EXCUSED_PERCENT_MAX: Final = 5  # harness-round: more than 5 % of attempts ending in infrastructure or provider errors
ATTEMPTS_BEFORE_SHARE: Final = 40  # below this a single fault would be a share above 5 %, which says nothing yet


def stop_reason(statements: Sequence[Statement]) -> tuple[str, str] | None:
    """The rule that forbids another attempt, with its detail; None when the round may go on."""
    stopped = [s for s in statements if s.kind is StatementKind.ROUND_STOPPED]
    if stopped:
        body = body_of(stopped[-1], bodies.RoundStopped)
        return body.rule, body.detail
    acts = [body_of(s, bodies.OperatorAct).act for s in statements if s.kind is StatementKind.OPERATOR_ACT]
    standing = [act for act in acts if act in ("stop", "resume")]
    if standing and standing[-1] == "stop":
        return "operator", "the operator asked for a stop"
    ends = [body_of(s, bodies.AttemptClassified).end for s in statements if s.kind is StatementKind.ATTEMPT_CLASSIFIED]
    excused = sum(1 for end in ends if end in EXCUSED)
    if len(ends) >= ATTEMPTS_BEFORE_SHARE and excused * 100 > EXCUSED_PERCENT_MAX * len(ends):
        return "error-share", f"{excused} of {len(ends)} attempts ended in infrastructure or provider errors"
    return None
