"""One logical run from its first intent to its score: plain functions over the world, each safe to call again."""

from __future__ import annotations

import threading
from typing import Final

from controller import schedule
from controller.conductor.attempt import ATTEMPT_STEPS, CellHalts, intend, load
from controller.conductor.history import AttemptHistory, RunHistory, attempt_history, body_of, run_histories
from controller.conductor.spending import authorization_gap
from controller.conductor.stops import OPERATOR, error_share, standing_stop
from controller.conductor.world import World
from controller.domain import bodies
from controller.domain.ids import AttemptId, LogicalRunId, attempt_id
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun
from controller.domain.statement import StatementKind
from controller.settle.rules import sum_usd

HALTED: Final = "halted"
STOPPED: Final = "stopped"
SCORED: Final = "scored"

_planning = threading.Lock()  # the caps are checked and the intent written in one piece


def logical_run(world: World, run_id: str) -> LogicalRun:
    """The scheduled run of that id."""
    return next(run for run in world.manifest.schedule if run.id == run_id)


def history(world: World, run_id: str) -> RunHistory:
    """The run as the journal knows it now."""
    empty = RunHistory(run=run_id, attempts=(), halted=None, resolved={}, scored=None)
    return run_histories(world.journal.statements()).get(run_id, empty)


def plan_next(world: World, run_id: str) -> str:
    """The id of the attempt to work on, its intent durable, or one of HALTED, STOPPED, SCORED."""
    run = logical_run(world, run_id)
    with _planning:
        known = history(world, run_id)
        if known.scored is not None:
            return SCORED
        unfinished = next((attempt for attempt in known.attempts if attempt.classified is None), None)
        if unfinished is not None and known.halted is None:
            return unfinished.attempt_id
        action = schedule.next_action(
            [a.classified for a in known.attempts if a.classified],
            [a.settled for a in known.attempts if a.settled],
            halted=known.halted.reason if known.halted else None,
        )
        match action:
            case schedule.Halt():
                return HALTED
            case schedule.Score(attempt=number, outcome=outcome):
                _score(world, run, known, number, outcome)
                return SCORED
            case schedule.Next(number=number):
                return _admit(world, run, number)


def _admit(world: World, run: LogicalRun, number: int) -> str:
    """Write the intent of a new attempt, unless a stop rule or a cap forbids it."""
    statements = world.journal.statements()
    reason = (
        standing_stop(statements)
        or error_share(statements, world.manifest.stop_rules)
        or authorization_gap(world, statements, number)
    )
    if reason is not None:
        if reason[0] != OPERATOR:
            body = bodies.RoundStopped(rule=reason[0], detail=reason[1])
            if standing_stop(statements) is None:
                round_id = world.manifest.round_id
                world.journal.append(StatementKind.ROUND_STOPPED, round_id, body, at=world.clock.now())
        return STOPPED
    name = attempt_id(world.manifest_digest, LogicalRunId(run.id), number)
    intend(world, run, name, number, generation=1)
    return name


def _score(world: World, run: LogicalRun, known: RunHistory, number: int, outcome: str) -> None:
    body = bodies.RunScored.model_validate(
        {
            "outcome": outcome,
            "scored_attempt": number,
            "attempts": len(known.attempts),
            "usd": sum_usd(a.settled.usd if a.settled else None for a in known.attempts),
        }
    )
    world.journal.append(StatementKind.RUN_SCORED, run.id, body, at=world.clock.now())


def act(world: World, run_id: str, name: str, step_name: str) -> str:
    """Do one step of one attempt unless the journal has it. Returns the step's name, or HALTED."""
    run = logical_run(world, run_id)
    attempt = load(world, AttemptId(name))
    step = next(step for step in ATTEMPT_STEPS if step.name == step_name)
    if step.done(attempt):
        return step_name
    decision = history(world, run_id).resolved.get(name)
    if decision is not None and attempt.result is None:
        _write_off(world, attempt, decision)
        return step_name
    try:
        step.act(world, run, attempt)
    except CellHalts as halt:
        key = f"{StatementKind.CELL_HALTED}:{name}:{step_name}:g{attempt.generation}"
        world.journal.append(StatementKind.CELL_HALTED, run_id, halt.body, at=world.clock.now(), key=key)
        return HALTED
    return step_name


def _write_off(world: World, attempt: AttemptHistory, decision: str) -> None:
    """A person has decided what an ambiguous attempt counts as; its money still counts in full."""
    body = bodies.ResultAcknowledged(
        artifacts=(),
        missing=(),
        wall_ms=0,
        end=EndKind.INFRASTRUCTURE if decision == "resolve-lost" else EndKind.WRITTEN_OFF,
        reason=f"decided by the operator after a halt: {decision.removeprefix('resolve-')}",
        self_reported_usd=None,
    )
    world.journal.append(StatementKind.RESULT_ACKNOWLEDGED, attempt.attempt_id, body, at=world.clock.now())


def finished(world: World) -> bool:
    """True when every predeclared logical run is scored."""
    scored = {s.subject for s in world.journal.statements() if s.kind is StatementKind.RUN_SCORED}
    return all(run.id in scored for run in world.manifest.schedule)


__all__ = ["HALTED", "SCORED", "STOPPED", "act", "attempt_history", "body_of", "finished", "history", "plan_next"]
