"""Predeclared stop rules, watched in the log. A round never stops because of who is winning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.conductor.history import body_of
from controller.domain import bodies
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.protocols.harness_round.manifest import StopRules

OPERATOR: Final = "operator"
EXCUSED: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.PROVIDER_ERROR})


def standing_stop(statements: Sequence[Statement]) -> tuple[str, str] | None:
    """The stop that is in force, with its detail: one written by a rule, or an operator's that was not taken back."""
    stopped = [s for s in statements if s.kind is StatementKind.ROUND_STOPPED]
    if stopped:
        body = body_of(stopped[-1], bodies.RoundStopped)
        return body.rule, body.detail
    acts = [body_of(s, bodies.OperatorAct).act for s in statements if s.kind is StatementKind.OPERATOR_ACT]
    standing = [act for act in acts if act in ("stop", "resume")]
    if standing and standing[-1] == "stop":
        return OPERATOR, "the operator asked for a stop"
    return None


def error_share(statements: Sequence[Statement], rules: StopRules) -> tuple[str, str] | None:
    """Whether too many attempts ended in infrastructure or provider errors. A share of very few says nothing."""
    ends = [body_of(s, bodies.AttemptClassified).end for s in statements if s.kind is StatementKind.ATTEMPT_CLASSIFIED]
    excused = sum(1 for end in ends if end in EXCUSED)
    if len(ends) >= rules.attempts_before_share and excused * 100 > rules.excused_percent_max * len(ends):
        return "error-share", f"{excused} of {len(ends)} attempts ended in infrastructure or provider errors"
    return None
