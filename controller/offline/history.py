"""The log, sorted once by attempt and by logical run. An effect before its intent is refused here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Type, TypeVar

from . import claims as said
from .log import Statement
from .refusal import Refused

B = TypeVar("B")
_OF_ATTEMPT = (
    said.IsolationChecked,
    said.ResultAcknowledged,
    said.VerdictReached,
    said.RequestsRefused,
    said.AttemptSettled,
    said.AttemptClassified,
)


@dataclass
class Attempt:
    """One attempt and every statement about it, in order."""

    id: str
    run: str
    number: int
    generation: int
    intended_at: int  # of the first generation
    statements: List[Statement] = field(default_factory=list)

    def every(self, kind: Type[B]) -> List[B]:
        """All claims of that kind."""
        return [statement.claim for statement in self.statements if isinstance(statement.claim, kind)]

    def the(self, kind: Type[B]) -> Optional[B]:
        """The newest claim of that kind."""
        found = self.every(kind)
        return found[-1] if found else None

    @property
    def ended_at(self) -> Optional[int]:
        """When the verdict was reached, or the result acknowledged when nothing was judged."""
        for kind in (said.VerdictReached, said.ResultAcknowledged):
            times = [statement.at for statement in self.statements if isinstance(statement.claim, kind)]
            if times:
                return times[-1]
        return None


@dataclass
class RunHistory:
    """One logical run."""

    attempts: List[Attempt] = field(default_factory=list)
    scores: List[said.RunScored] = field(default_factory=list)
    reconciled: List[said.RunReconciled] = field(default_factory=list)
    invalidated: List[said.RunInvalidated] = field(default_factory=list)
    is_halted: bool = False

    @property
    def outcome(self) -> Optional[str]:
        """The provider's report has the last word; None without a score."""
        if self.reconciled:
            return self.reconciled[0].outcome
        return self.scores[0].outcome if self.scores else None

    def account(self, attempt: Attempt) -> Optional[said.AttemptSettled]:
        """What the attempt cost, as it holds in the end."""
        if self.reconciled:
            return self.reconciled[0].accounts.get(attempt.id)
        return attempt.the(said.AttemptSettled)

    @property
    def accounts(self) -> Dict[str, said.AttemptSettled]:
        """Of every settled attempt, as they hold in the end."""
        if self.reconciled:
            return self.reconciled[0].accounts
        found = ((attempt.id, attempt.the(said.AttemptSettled)) for attempt in self.attempts)
        return {name: account for name, account in found if account is not None}


@dataclass
class History:
    """The whole log."""

    attempts: Dict[str, Attempt] = field(default_factory=dict)
    runs: Dict[str, RunHistory] = field(default_factory=dict)
    standing: Dict[str, int] = field(default_factory=dict)  # machine -> generation leased and not destroyed since
    gone: Dict[str, int] = field(default_factory=dict)  # machine -> highest generation proven gone
    was_stopped: bool = False  # for a predeclared event
    is_paused: bool = False  # by a person
    settlements: List[said.RoundSettled] = field(default_factory=list)
    closings: List[said.RoundClosed] = field(default_factory=list)

    def attempt_of(self, subject: str, statement: Statement) -> Attempt:
        """The attempt that a machine of this name serves: verifiers are called ver- where attempts are called att-."""
        name = "att-" + subject[4:] if subject.startswith("ver-") else subject
        if name not in self.attempts:
            raise Refused(f"statement {statement.sequence} precedes the intent of {subject[:80]}")
        return self.attempts[name]

    def run_of(self, name: str) -> RunHistory:
        """The run of that name, new if need be."""
        return self.runs.setdefault(name, RunHistory())


def history_of(log: List[Statement]) -> History:
    """Read the statements in order. Raises Refused."""
    history = History()
    for statement in log:
        _add(history, statement)
    return history


def _add(history: History, statement: Statement) -> None:
    claim = statement.claim
    if isinstance(claim, said.AttemptIntended):
        _intend(history, statement, claim)
    elif isinstance(claim, (said.SandboxLeased, said.SandboxGone)):
        _machine(history, statement, claim)
    elif isinstance(claim, _OF_ATTEMPT):
        history.attempt_of(statement.subject, statement).statements.append(statement)
    elif isinstance(claim, (said.RunScored, said.RunReconciled, said.RunInvalidated, said.CellHalted)):
        _run(history, statement, claim)
    elif isinstance(claim, said.OperatorAct):
        _act(history, statement, claim)
    elif isinstance(claim, said.RoundStopped):
        history.was_stopped = True
    elif isinstance(claim, said.RoundSettled):
        history.settlements.append(claim)
    elif isinstance(claim, said.RoundClosed):
        history.closings.append(claim)


def _run(history: History, statement: Statement, claim: Any) -> None:
    run = history.run_of(statement.subject)
    if isinstance(claim, said.RunScored):
        run.scores.append(claim)
    elif isinstance(claim, said.CellHalted):
        run.is_halted = True
    elif history.settlements or history.closings:
        raise Refused(f"statement {statement.sequence} is about a run whose books were closed")
    elif isinstance(claim, said.RunReconciled):
        run.reconciled.append(claim)
    else:
        run.invalidated.append(claim)


def _act(history: History, statement: Statement, act: said.OperatorAct) -> None:
    """What a person decided of a run, or of the round: to end it for an event, to pause it, to go on."""
    if act.attempt_id is not None:
        history.run_of(statement.subject).is_halted = False
    elif act.event is not None:
        history.was_stopped = True
    else:
        history.is_paused = act.act == "stop"


def _intend(history: History, statement: Statement, intent: said.AttemptIntended) -> None:
    """A second intent of an attempt is a later generation of the same one."""
    if history.closings:
        raise Refused(f"statement {statement.sequence} intends an attempt after the round was closed")
    known = history.attempts.get(statement.subject)
    if known is None:
        attempt = Attempt(statement.subject, intent.run, intent.number, intent.generation, statement.at)
        history.attempts[statement.subject] = attempt
        history.run_of(intent.run).attempts.append(attempt)
    elif (known.run, known.number) != (intent.run, intent.number) or intent.generation <= known.generation:
        raise Refused(f"statement {statement.sequence} intends {known.id} again as something else")
    else:
        known.generation = intent.generation


def _machine(history: History, statement: Statement, claim: Any) -> None:
    history.attempt_of(statement.subject, statement)
    if claim.name != statement.subject:
        raise Refused(f"statement {statement.sequence} is about {statement.subject} but names {claim.name[:80]}")
    if isinstance(claim, said.SandboxLeased):
        history.standing[claim.name] = claim.generation
        return
    history.gone[claim.name] = max(claim.generation, history.gone.get(claim.name, 0))
    if claim.generation >= history.standing.get(claim.name, 0):
        history.standing.pop(claim.name, None)
