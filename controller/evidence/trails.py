"""What the log says of each attempt and each logical run, folded once for the steps of the check.

The conductor has its own reading of the journal; a checker that shared it would share its mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from controller.domain import bodies
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected
from controller.evidence.bundle import patch_name
from controller.evidence.claims import claim


@dataclass
class AttemptTrail:
    """One attempt. Lists hold every statement of the kind in order; a second one where one belongs is a fault."""

    attempt_id: str
    run: str
    number: int
    generation: int
    isolation: list[bodies.IsolationChecked] = field(default_factory=list)
    results: list[bodies.ResultAcknowledged] = field(default_factory=list)
    verdicts: list[bodies.VerdictReached] = field(default_factory=list)
    refused: list[bodies.RequestsRefused] = field(default_factory=list)
    settled: list[bodies.AttemptSettled] = field(default_factory=list)
    classified: list[bodies.AttemptClassified] = field(default_factory=list)


@dataclass
class RunTrail:
    """One logical run."""

    attempts: list[AttemptTrail] = field(default_factory=list)
    scored: list[bodies.RunScored] = field(default_factory=list)
    reconciled: list[bodies.RunReconciled] = field(default_factory=list)
    invalidated: list[bodies.RunInvalidated] = field(default_factory=list)
    halted: bool = False

    @property
    def outcome(self) -> Literal["success", "failure", "invalid"] | None:
        """As scored, unless the provider's report had a say in it since."""
        if self.reconciled:
            return self.reconciled[0].outcome
        return self.scored[0].outcome if self.scored else None

    def accounts(self) -> dict[str, bodies.AttemptSettled]:
        """The account that holds for each settled attempt."""
        if self.reconciled:
            return self.reconciled[0].accounts
        return {trail.attempt_id: trail.settled[-1] for trail in self.attempts if trail.settled}


@dataclass
class Trails:
    """The whole log."""

    attempts: dict[str, AttemptTrail] = field(default_factory=dict)
    runs: dict[str, RunTrail] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)  # machine -> highest generation proven gone
    standing: dict[str, int] = field(default_factory=dict)  # machine -> generation leased and not destroyed afterwards
    stopped: bool = False  # by a predeclared event
    stopped_by_operator: bool = False  # a pause
    settlement: list[bodies.RoundSettled] = field(default_factory=list)
    closing: list[bodies.RoundClosed] = field(default_factory=list)


def judged_patches(manifest: RoundManifest, trails: Trails, *, sealed: bool) -> dict[str, str | None]:
    """Digest of every judged patch by its file's name: of sealed tasks, or of all others. Null when there was none."""
    hidden = {task.id for task in manifest.tasks if task.sealed is not None}
    chosen = {run.id for run in manifest.schedule if (run.task in hidden) is sealed}
    return {
        patch_name(trail.attempt_id): reached.verdict.patch_digest
        for trail in trails.attempts.values()
        if trail.run in chosen
        for reached in trail.verdicts
    }


def fold(statements: Sequence[Statement]) -> Trails:
    """Read the statements in order. Raises BundleRejected for an effect before its intent."""
    trails = Trails()
    for statement in statements:
        _add(trails, statement)
    return trails


def machine_attempt(name: str) -> str:
    """The attempt a machine serves: runners bear the attempt's name, verifiers `ver-` in place of `att-`."""
    return "att-" + name.removeprefix("ver-") if name.startswith("ver-") else name


def _attempt(trails: Trails, statement: Statement) -> AttemptTrail:
    """The trail of the statement's attempt, whose intent must come first."""
    found = trails.attempts.get(machine_attempt(statement.subject))
    if found is None:
        raise BundleRejected(
            f"statement {statement.sequence} ({statement.kind.value}) precedes the intent of {statement.subject}"
        )
    return found


def _add(trails: Trails, statement: Statement) -> None:
    match statement.kind:
        case StatementKind.ATTEMPT_INTENDED:
            _intend(trails, statement)
        case StatementKind.SANDBOX_LEASED | StatementKind.SANDBOX_DESTROYED:
            _machine(trails, statement)
        case StatementKind.ROUND_STOPPED:
            trails.stopped = True
        case StatementKind.ROUND_SETTLED:
            trails.settlement.append(claim(statement, bodies.RoundSettled))
        case StatementKind.ROUND_CLOSED:
            trails.closing.append(claim(statement, bodies.RoundClosed))
        case (
            StatementKind.RUN_SCORED
            | StatementKind.CELL_HALTED
            | StatementKind.OPERATOR_ACT
            | StatementKind.RUN_RECONCILED
            | StatementKind.RUN_INVALIDATED
        ):
            _run(trails, statement)
        case (
            StatementKind.ROUND_FROZEN
            | StatementKind.ROUND_AUTHORIZED
            | StatementKind.ROUND_STARTED
            | StatementKind.DISPUTE_FILED
        ):
            pass  # step 4 reads these in their order
        case _:
            _attempt_event(_attempt(trails, statement), statement)


def _attempt_event(trail: AttemptTrail, statement: Statement) -> None:
    match statement.kind:
        case StatementKind.ISOLATION_RECEIPT:
            trail.isolation.append(claim(statement, bodies.IsolationChecked))
        case StatementKind.RESULT_ACKNOWLEDGED:
            trail.results.append(claim(statement, bodies.ResultAcknowledged))
        case StatementKind.VERDICT:
            trail.verdicts.append(claim(statement, bodies.VerdictReached))
        case StatementKind.REQUESTS_REFUSED:
            trail.refused.append(claim(statement, bodies.RequestsRefused))
        case StatementKind.ATTEMPT_SETTLED:
            trail.settled.append(claim(statement, bodies.AttemptSettled))
        case StatementKind.ATTEMPT_CLASSIFIED:
            trail.classified.append(claim(statement, bodies.AttemptClassified))
        case other:
            raise BundleRejected(f"statement {statement.sequence}: kind {other.value} is not one of an attempt")


def _run(trails: Trails, statement: Statement) -> None:
    if statement.kind is StatementKind.OPERATOR_ACT:
        act = claim(statement, bodies.OperatorAct)
        if act.attempt_id is None:
            if act.event is None:
                trails.stopped_by_operator = act.act == "stop"
            else:
                trails.stopped = True
            return
    run = trails.runs.setdefault(statement.subject, RunTrail())
    if statement.kind is StatementKind.RUN_SCORED:
        run.scored.append(claim(statement, bodies.RunScored))
    elif statement.kind in (StatementKind.RUN_RECONCILED, StatementKind.RUN_INVALIDATED):
        if trails.settlement or trails.closing:
            raise BundleRejected(f"statement {statement.sequence} is about a run whose books were closed")
        if statement.kind is StatementKind.RUN_RECONCILED:
            run.reconciled.append(claim(statement, bodies.RunReconciled))
        else:
            run.invalidated.append(claim(statement, bodies.RunInvalidated))
    elif statement.kind is StatementKind.CELL_HALTED:
        run.halted = True
    else:
        run.halted = False


def _intend(trails: Trails, statement: Statement) -> None:
    """A later intent of the same attempt is a new generation of it, never another attempt."""
    if trails.closing:
        raise BundleRejected(f"statement {statement.sequence} intends an attempt after the round was closed")
    intent = claim(statement, bodies.AttemptIntended)
    known = trails.attempts.get(statement.subject)
    if known is None:
        trail = AttemptTrail(statement.subject, intent.run, intent.number, intent.generation)
        trails.attempts[statement.subject] = trail
        trails.runs.setdefault(intent.run, RunTrail()).attempts.append(trail)
        return
    if (known.run, known.number) != (intent.run, intent.number) or intent.generation <= known.generation:
        raise BundleRejected(f"statement {statement.sequence} intends {statement.subject} again as something else")
    known.generation = intent.generation


def _machine(trails: Trails, statement: Statement) -> None:
    _attempt(trails, statement)
    if statement.kind is StatementKind.SANDBOX_LEASED:
        leased = claim(statement, bodies.SandboxLeased)
        named = leased.name
        trails.standing[named] = leased.generation
    else:
        gone = claim(statement, bodies.SandboxGone)
        named = gone.name
        trails.gone[named] = max(gone.generation, trails.gone.get(named, 0))
        if gone.generation >= trails.standing.get(named, 0):
            trails.standing.pop(named, None)
    if named != statement.subject:
        raise BundleRejected(f"statement {statement.sequence} is about {statement.subject} but names {named}")
