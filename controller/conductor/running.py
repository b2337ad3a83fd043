"""One logical run from its first intent to its score, in steps that are safe to take again."""

from __future__ import annotations

import threading
from typing import Final

from controller import schedule
from controller.conductor.admission import Admission, Wait
from controller.conductor.attempt import ATTEMPT_STEPS, CellHalts, intend, load
from controller.conductor.history import AttemptHistory, RunHistory, run_history
from controller.conductor.world import World
from controller.domain import bodies
from controller.domain.ids import AttemptId, LogicalRunId, attempt_id
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.money import sum_usd
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun
from controller.domain.statement import StatementKind

HALTED: Final = "halted"
STOPPED: Final = "stopped"
SCORED: Final = "scored"
WAIT_SECONDS: Final = 5.0  # an attempt takes a minute at least


class Runner:
    """Works on logical runs of one world. Safe to use from several threads, one logical run each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._admission = Admission(world)
        self._planning = threading.Lock()  # the caps are checked and the intent written in one piece
        self._at_work: set[str] = set()  # logical runs with an attempt under way
        self._runs = {run.id: run for run in world.manifest.schedule}

    def plan_next(self, run_id: str) -> str:
        """The id of the attempt to work on, its intent durable, or one of HALTED, STOPPED, SCORED."""
        run = self._runs[run_id]
        with self._planning:
            self._admission.look()
            self._at_work.discard(run_id)
        known = history(self._world, run_id)
        if known.scored is not None:
            return SCORED
        unfinished = next((attempt for attempt in known.attempts if attempt.classified is None), None)
        if unfinished is not None and known.halted is None:
            with self._planning:
                self._at_work.add(run_id)
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
                _score(self._world, run, known, number, outcome)
                return SCORED
            case schedule.Next(number=number):
                return self._admit(run, number)

    def _admit(self, run: LogicalRun, number: int) -> str:
        while True:
            with self._planning:
                refusal = self._admission.refusal(number, others_at_work=bool(self._at_work))
                if refusal is None:
                    name = attempt_id(self._world.manifest_digest, LogicalRunId(run.id), number)
                    intend(self._world, run, name, number, generation=1)
                    self._at_work.add(run.id)
                    return name
            if not isinstance(refusal, Wait):
                return STOPPED
            self._world.clock.sleep(WAIT_SECONDS)

    def act(self, run_id: str, name: str, step_name: str) -> str:
        """Do one step of one attempt unless the journal has it. Returns the step's name, or HALTED."""
        goes_on = False
        try:
            result = self._act(run_id, name, step_name)
            goes_on = result != HALTED
            return result
        finally:
            if not goes_on:  # nobody may wait for an attempt that only a person or a resume takes up again
                with self._planning:
                    self._at_work.discard(run_id)

    def _act(self, run_id: str, name: str, step_name: str) -> str:
        world = self._world
        attempt = load(world, AttemptId(name))
        step = next(step for step in ATTEMPT_STEPS if step.name == step_name)
        if step.done(attempt):
            return step_name
        decision = history(world, run_id).resolved.get(name)
        if decision is not None and attempt.result is None:
            _write_off(world, attempt, decision)
            return step_name
        try:
            step.act(world, self._runs[run_id], attempt)
        except CellHalts as halt:
            key = f"{StatementKind.CELL_HALTED}:{name}:{step_name}:g{attempt.generation}"
            world.journal.append(StatementKind.CELL_HALTED, run_id, halt.body, at=world.clock.now(), key=key)
            return HALTED
        return step_name


def history(world: World, run_id: str) -> RunHistory:
    """The run as the journal knows it now. Attempt ids follow from the plan, so nothing else is read."""
    names = [
        attempt_id(world.manifest_digest, LogicalRunId(run_id), number)
        for number in range(1, ATTEMPTS_PER_LOGICAL_RUN_MAX + 1)
    ]
    attempts = {name: world.journal.of(name) for name in names}
    return run_history(run_id, world.journal.of(run_id), {name: known for name, known in attempts.items() if known})


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
