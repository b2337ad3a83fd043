"""Predeclared stop rules, watched as the log grows. A round never stops because of who is winning.

The conductor and the checker use this one watch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from controller.domain import bodies
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.domain.stops import DECLARED, StopEvent
from controller.domain.terms import StopRules
from controller.errors import BundleRejected
from controller.evidence.claims import claim

OPERATOR: Final = "operator"  # a pause, no event: the round goes on when it is resumed
EXCUSED: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.PROVIDER_ERROR})
_SHOWN_IN_THE_LOG: Final = frozenset({StopEvent.ERROR_SHARE, StopEvent.OBSERVED_MODEL, StopEvent.RECONCILIATION})


class StopWatch:
    """What the statements so far say about stopping."""

    def __init__(self, rules: StopRules) -> None:
        self._rules = rules
        self._ended = 0
        self._excused = 0
        self._settled = 0
        self._unreconciled = 0
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
                self._take_act(claim(statement, bodies.OperatorAct))
            case StatementKind.ATTEMPT_SETTLED:
                settled = claim(statement, bodies.AttemptSettled)
                self._settled += 1
                self._unreconciled += not settled.valid
                if settled.off_lane_models:
                    self._off_lane.update(settled.off_lane_models)
                    self._off_lane_attempts.append(statement.subject)
            case StatementKind.ATTEMPT_CLASSIFIED:
                self._ended += 1
                self._excused += claim(statement, bodies.AttemptClassified).end in EXCUSED
            case _:
                pass

    def _take_act(self, act: bodies.OperatorAct) -> None:
        if act.event is not None:
            self._written = self._written or bodies.RoundStopped(rule=act.event, detail=act.note)
        elif act.act in ("stop", "resume"):
            self._operator = act.act == "stop"

    @property
    def written(self) -> bodies.RoundStopped | None:
        """The stop that a rule wrote or a person declared. It is never taken back."""
        return self._written

    @property
    def standing(self) -> bodies.RoundStopped | None:
        """The stop in force: one that was written, or an operator's pause that was not taken back."""
        if self._written is None and self._operator:
            return bodies.RoundStopped(rule=OPERATOR, detail="the operator asked for a stop")
        return self._written

    @property
    def observed_model(self) -> bodies.RoundStopped | None:
        """Whether any request was answered by a model that is not its lane's. One is enough."""
        if not self._off_lane or StopEvent.OBSERVED_MODEL not in self._rules.events:
            return None
        models = ", ".join(f"{model!r} ({count})" for model, count in sorted(self._off_lane.items()))
        detail = (
            f"{self._off_lane.total()} requests in {len(self._off_lane_attempts)} attempts were answered by a model "
            f"off the lane: {models}; first in {self._off_lane_attempts[0]}"
        )
        return bodies.RoundStopped(rule=StopEvent.OBSERVED_MODEL, detail=detail)

    def rate_card(self, in_use: str, frozen: str) -> bodies.RoundStopped | None:
        """Whether the meter prices by another card than the frozen one; both are given by digest."""
        if in_use == frozen or StopEvent.RATE_CARD not in self._rules.events:
            return None
        detail = f"the meter prices by {in_use}, the manifest fixes {frozen}"
        return bodies.RoundStopped(rule=StopEvent.RATE_CARD, detail=detail)

    @property
    def error_share(self) -> bodies.RoundStopped | None:
        """Whether too many attempts ended in infrastructure or provider errors."""
        if StopEvent.ERROR_SHARE not in self._rules.events:
            return None
        if not self._exceeds(self._excused, self._ended, self._rules.excused_percent_max):
            return None
        detail = f"{self._excused} of {self._ended} attempts ended in infrastructure or provider errors"
        return bodies.RoundStopped(rule=StopEvent.ERROR_SHARE, detail=detail)

    @property
    def reconciliation(self) -> bodies.RoundStopped | None:
        """Whether the accounts of too many attempts did not settle."""
        if StopEvent.RECONCILIATION not in self._rules.events:
            return None
        if not self._exceeds(self._unreconciled, self._settled, self._rules.unreconciled_percent_max):
            return None
        detail = f"the accounts of {self._unreconciled} of {self._settled} attempts did not settle"
        return bodies.RoundStopped(rule=StopEvent.RECONCILIATION, detail=detail)

    def _exceeds(self, count: int, total: int, percent_max: int) -> bool:
        """True for more than that share. A share of very few says nothing."""
        return total >= self._rules.attempts_before_share and count * 100 > percent_max * total


def standing_stop(statements: Iterable[Statement]) -> bodies.RoundStopped | None:
    """The stop in force after all the given statements."""
    watch = StopWatch(StopRules())
    for statement in statements:
        watch.add(statement)
    return watch.standing


def check_stops(rules: StopRules, statements: Iterable[Statement]) -> None:
    """Whether each stop was predeclared, and whether the log shows its event, as far as a log can show it.

    Raises BundleRejected naming the statement. Caps are replayed elsewhere, under the grant in force; which card the
    meter priced by, and what a person declared, is testimony.
    """
    watch, shown = StopWatch(rules), set[str]()
    for statement in statements:
        watch.add(statement)
        found = (watch.error_share, watch.observed_model, watch.reconciliation)
        # An event that showed before the stop was written is enough: other attempts may have ended in between.
        shown |= {each.rule for each in found if each is not None}
        place = f"statement {statement.sequence} stops the round"
        if statement.kind is StatementKind.ROUND_STOPPED:
            rule = claim(statement, bodies.RoundStopped).rule
            if rule not in rules.events or rule in DECLARED:
                raise BundleRejected(f"{place} for {rule!r}, which is no predeclared event of the log")
            if rule in _SHOWN_IN_THE_LOG and rule not in shown:
                raise BundleRejected(f"{place} for {rule!r}, which the log does not show")
        elif statement.kind is StatementKind.OPERATOR_ACT:
            event = claim(statement, bodies.OperatorAct).event
            if event is not None and (event not in rules.events or event not in DECLARED):
                raise BundleRejected(f"{place} for {event!r}, which is no predeclared event that persons declare")
