"""Predeclared stop rules, watched as the log grows. A round never stops because of who is winning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from controller.domain import bodies
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.domain.terms import StopRules
from controller.errors import CapReached, FairtrialError, ObservedModelMismatch, RateCardChanged
from controller.evidence.claims import claim

OPERATOR: Final = "operator"
AUTHORIZATION: Final = "authorization"
ERROR_SHARE: Final = "error-share"
OBSERVED_MODEL: Final = "observed-model"
RATE_CARD: Final = "rate-card"
EXCUSED: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.PROVIDER_ERROR})


class StopWatch:
    """What the statements so far say about stopping."""

    def __init__(self, rules: StopRules) -> None:
        self._rules = rules
        self._ended = 0
        self._excused = 0
        self._off_lane: Counter[str] = Counter()
        self._off_lane_attempts: list[str] = []
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
            case StatementKind.ATTEMPT_SETTLED:
                models = claim(statement, bodies.AttemptSettled).off_lane_models
                if models:
                    self._off_lane.update(models)
                    self._off_lane_attempts.append(statement.subject)
            case StatementKind.ATTEMPT_CLASSIFIED:
                self._ended += 1
                self._excused += claim(statement, bodies.AttemptClassified).end in EXCUSED
            case _:
                pass

    @property
    def written(self) -> bodies.RoundStopped | None:
        """The stop that a rule wrote. It is never taken back."""
        return self._written

    @property
    def standing(self) -> bodies.RoundStopped | None:
        """The stop in force: one written by a rule, or an operator's that was not taken back."""
        if self._written is None and self._operator:
            return bodies.RoundStopped(rule=OPERATOR, detail="the operator asked for a stop")
        return self._written

    @property
    def observed_model(self) -> bodies.RoundStopped | None:
        """Whether any request was answered by a model that is not its lane's. One is enough."""
        if not self._off_lane or OBSERVED_MODEL not in self._rules.events:
            return None
        models = ", ".join(f"{model!r} ({count})" for model, count in sorted(self._off_lane.items()))
        detail = (
            f"{self._off_lane.total()} requests in {len(self._off_lane_attempts)} attempts were answered by a model "
            f"off the lane: {models}; first in {self._off_lane_attempts[0]}"
        )
        return bodies.RoundStopped(rule=OBSERVED_MODEL, detail=detail)

    def rate_card(self, in_use: str, frozen: str) -> bodies.RoundStopped | None:
        """Whether the meter prices by another card than the frozen one; both are given by digest."""
        if in_use == frozen or RATE_CARD not in self._rules.events:
            return None
        return bodies.RoundStopped(rule=RATE_CARD, detail=f"the meter prices by {in_use}, the manifest fixes {frozen}")

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


def stop_error(stopped: bodies.RoundStopped, *, round_id: str, finished: bool) -> FairtrialError | None:
    """What the person who conducts the round is told; None for a stop that status and report say enough about."""
    text = f"round {round_id} stopped: {stopped.rule}: {stopped.detail}"
    if stopped.rule == OBSERVED_MODEL:
        return ObservedModelMismatch(text)
    if stopped.rule == RATE_CARD:
        return RateCardChanged(text)
    return CapReached(text) if stopped.rule == AUTHORIZATION and not finished else None
