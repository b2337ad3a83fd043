"""Predeclared stop rules, watched as the log grows. A round never stops because of who is winning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.domain import bodies
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim
from controller.protocols.harness_round.manifest import StopRules

OPERATOR: Final = "operator"
AUTHORIZATION: Final = "authorization"
ERROR_SHARE: Final = "error-share"
EXCUSED: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.PROVIDER_ERROR})


class StopWatch:
    """What the statements so far say about stopping."""

    def __init__(self, rules: StopRules) -> None:
        self._rules = rules
        self._ended = 0
        self._excused = 0
        self._written: bodies.RoundStopped | None = None
        self._operator = False

    def add(self, statement: Statement) -> None:
        """Take one more statement into account."""
        match statement.kind:
            case StatementKind.ROUND_STOPPED:
                self._written = claim(statement, bodies.RoundStopped)
            case StatementKind.OPERATOR_ACT:
                act = claim(statement, bodies.OperatorAct).act
                if act in ("stop", "resume"):
                    self._operator = act == "stop"
            case StatementKind.ATTEMPT_CLASSIFIED:
                self._ended += 1
                self._excused += claim(statement, bodies.AttemptClassified).end in EXCUSED
            case _:
                pass

    @property
    def standing(self) -> bodies.RoundStopped | None:
        """The stop in force: one written by a rule, or an operator's that was not taken back."""
        if self._written is None and self._operator:
            return bodies.RoundStopped(rule=OPERATOR, detail="the operator asked for a stop")
        return self._written

    @property
    def error_share(self) -> bodies.RoundStopped | None:
        """Whether too many attempts ended in infrastructure or provider errors. A share of very few says nothing."""
        rules = self._rules
        if self._ended < rules.attempts_before_share:
            return None
        if self._excused * 100 <= rules.excused_percent_max * self._ended:
            return None
        detail = f"{self._excused} of {self._ended} attempts ended in infrastructure or provider errors"
        return bodies.RoundStopped(rule=ERROR_SHARE, detail=detail)


def standing_stop(statements: Iterable[Statement]) -> bodies.RoundStopped | None:
    """The stop in force after all the given statements."""
    watch = StopWatch(StopRules())
    for statement in statements:
        watch.add(statement)
    return watch.standing
