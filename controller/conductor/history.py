"""What the journal says of one logical run and of one attempt, as typed values. Pure: statements in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from controller.domain import bodies
from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class AttemptHistory:
    """One attempt as far as the journal knows it; None for what has not happened."""

    attempt_id: str
    run: str
    number: int
    generation: int
    intended_epoch: int
    intended_at: InstantMs  # of the first generation
    terminal_at: InstantMs | None  # of the verdict, or of the result when nothing could be judged
    isolation: bodies.IsolationChecked | None
    result: bodies.ResultAcknowledged | None
    runner_gone: bool
    verdict: bodies.VerdictReached | None
    settled: bodies.AttemptSettled | None
    classified: bodies.AttemptClassified | None

    @property
    def isolation_voids(self) -> bool:
        """True when nothing of the attempt may be judged: the machine, a limit or a probe failed."""
        return self.result is not None and self.result.end in (EndKind.INFRASTRUCTURE, EndKind.WRITTEN_OFF)


@dataclass(frozen=True)
class RunHistory:
    """All attempts of one logical run, oldest first, and how it stands."""

    run: str
    attempts: tuple[AttemptHistory, ...]
    halted: bodies.CellHalted | None  # the newest halt nobody has resolved
    resolved: Mapping[str, str]  # attempt id -> resolve-lost or resolve-failed
    scored: bodies.RunScored | None
    reconciled: bodies.RunReconciled | None = None

    @property
    def outcome(self) -> Literal["success", "failure", "invalid"] | None:
        """The run's outcome: as it was scored, unless the provider's report had a say in it since."""
        if self.reconciled is not None:
            return self.reconciled.outcome
        return self.scored.outcome if self.scored else None

    def account(self, attempt: AttemptHistory) -> bodies.AttemptSettled | None:
        """The account that holds for one of its attempts."""
        if self.reconciled is not None:
            return self.reconciled.accounts[attempt.attempt_id]
        return attempt.settled

    @property
    def accounts(self) -> tuple[bodies.AttemptSettled, ...]:
        """Of every settled attempt."""
        return tuple(found for attempt in self.attempts if (found := self.account(attempt)) is not None)


def run_histories(statements: Sequence[Statement]) -> dict[str, RunHistory]:
    """Every logical run that the log mentions."""
    by_subject: dict[str, list[Statement]] = {}
    order: dict[str, list[str]] = {}
    for statement in statements:
        by_subject.setdefault(statement.subject, []).append(statement)
        if statement.kind is StatementKind.ATTEMPT_INTENDED:
            attempts = order.setdefault(claim(statement, bodies.AttemptIntended).run, [])
            if statement.subject not in attempts:
                attempts.append(statement.subject)
    runs = set(order) | {s.subject for s in statements if s.kind is StatementKind.RUN_SCORED}
    return {
        run: run_history(run, by_subject.get(run, []), {name: by_subject[name] for name in order.get(run, [])})
        for run in sorted(runs)
    }


def run_history(run: str, own: Sequence[Statement], attempts: Mapping[str, Sequence[Statement]]) -> RunHistory:
    """One logical run from the statements about it and about each of its attempts, oldest attempt first."""
    halted: bodies.CellHalted | None = None
    resolved: dict[str, str] = {}
    for statement in own:
        if statement.kind is StatementKind.CELL_HALTED:
            halted = claim(statement, bodies.CellHalted)
        elif statement.kind is StatementKind.OPERATOR_ACT:
            act = claim(statement, bodies.OperatorAct)
            if act.attempt_id is not None:
                resolved[act.attempt_id] = act.act
                halted = None
    return RunHistory(
        run=run,
        attempts=tuple(attempt_history(name, known) for name, known in attempts.items()),
        halted=halted,
        resolved=resolved,
        scored=newest(own, StatementKind.RUN_SCORED, bodies.RunScored),
        reconciled=newest(own, StatementKind.RUN_RECONCILED, bodies.RunReconciled),
    )


def newest(statements: Iterable[Statement], kind: StatementKind, model: type[R]) -> R | None:
    """The newest body of that kind, or None."""
    found = [statement for statement in statements if statement.kind is kind]
    return claim(found[-1], model) if found else None


def attempt_history(attempt_id: str, statements: Sequence[Statement]) -> AttemptHistory:
    """One attempt; its first statement is the intent."""
    intents = [s for s in statements if s.kind is StatementKind.ATTEMPT_INTENDED]
    intent = claim(intents[-1], bodies.AttemptIntended)
    ends = {s.kind: s.at for s in statements if s.kind in (StatementKind.VERDICT, StatementKind.RESULT_ACKNOWLEDGED)}
    gone = newest(statements, StatementKind.SANDBOX_DESTROYED, bodies.SandboxGone)
    return AttemptHistory(
        attempt_id=attempt_id,
        run=intent.run,
        number=intent.number,
        generation=intent.generation,
        intended_epoch=intent.epoch,
        intended_at=intents[0].at,
        terminal_at=ends.get(StatementKind.VERDICT, ends.get(StatementKind.RESULT_ACKNOWLEDGED)),
        isolation=newest(statements, StatementKind.ISOLATION_RECEIPT, bodies.IsolationChecked),
        result=newest(statements, StatementKind.RESULT_ACKNOWLEDGED, bodies.ResultAcknowledged),
        runner_gone=gone is not None and gone.generation == intent.generation,
        verdict=newest(statements, StatementKind.VERDICT, bodies.VerdictReached),
        settled=newest(statements, StatementKind.ATTEMPT_SETTLED, bodies.AttemptSettled),
        classified=newest(statements, StatementKind.ATTEMPT_CLASSIFIED, bodies.AttemptClassified),
    )
