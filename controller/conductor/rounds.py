"""What an operator does with a round: start or resume, stop, resolve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from controller.authorize import check_authorization, log_grant
from controller.conductor.history import run_histories
from controller.conductor.running import finished
from controller.conductor.status import RoundStatus, round_status
from controller.conductor.workflow import conduct_round
from controller.conductor.world import World
from controller.destroy import sweep
from controller.domain import bodies
from controller.domain.authorization import Authorization
from controller.domain.statement import StatementKind
from controller.domain.stops import StopEvent
from controller.errors import (
    CapReached,
    FairtrialError,
    InvalidInput,
    ObservedModelMismatch,
    RateCardChanged,
    RoundHalted,
)
from controller.evidence.stops import OPERATOR, standing_stop
from controller.ports.clock import Clock
from controller.ports.journal import Journal

DATABASE: Final = "workflows.sqlite"


def start(world: World, *, fleet_size: int, on_progress: Callable[[RoundStatus], None]) -> RoundStatus:
    """Conduct every unfinished logical run, and return how the round stands.

    Raises NotAuthorized before anything is leased; RoundHalted when cells wait for a person; CapReached when the
    authorization is used up; ObservedModelMismatch or RateCardChanged when the round stopped for that; LogRewritten
    when the log is not what was signed before.
    """
    grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
    refuse_closed(world.journal, world.manifest.round_id)
    _record_start(world, grant)
    world.checkpoints.sign()
    sweep(world.pool, world.clock)

    def tick() -> None:
        world.checkpoints.tick()
        on_progress(round_status(world.manifest, world.journal.statements()))

    conduct_round(world, world.round_dir / DATABASE, fleet_size=fleet_size, on_progress=tick)
    status = round_status(world.manifest, world.journal.statements())
    if status.halted:
        cells = "\n".join(f"{cell.run}: {cell.detail}" for cell in status.cells if cell.state == "halted")
        raise RoundHalted(f"{status.halted} of {status.runs} cells are halted\n{cells}")
    stopped = standing_stop(world.journal.statements())
    error = stop_error(stopped, round_id=status.round_id, finished=finished(world)) if stopped else None
    if error is not None:
        raise error
    return status


def stop_error(stopped: bodies.RoundStopped, *, round_id: str, finished: bool) -> FairtrialError | None:
    """What the person who conducts the round is told; None for a stop that status and report say enough about."""
    text = f"round {round_id} stopped: {stopped.rule}: {stopped.detail}"
    if stopped.rule == StopEvent.OBSERVED_MODEL:
        return ObservedModelMismatch(text)
    if stopped.rule == StopEvent.RATE_CARD:
        return RateCardChanged(text)
    return CapReached(text) if stopped.rule == StopEvent.AUTHORIZATION and not finished else None


def _record_start(world: World, grant: Authorization) -> None:
    body = bodies.RoundStarted(
        manifest_digest=world.manifest_digest,
        authorization_digest=log_grant(world.journal, grant, at=world.clock.now()),
        epoch=world.epoch,
        pool=world.pool.name,
        isolation=world.pool.isolation.value,
    )
    key = f"{StatementKind.ROUND_STARTED}:e{world.epoch}"
    world.journal.append(StatementKind.ROUND_STARTED, world.manifest.round_id, body, at=world.clock.now(), key=key)
    standing = standing_stop(world.journal.statements())
    if standing is not None and standing.rule == OPERATOR:
        _operator_act(world.journal, world.clock, world.manifest.round_id, "resume", "the operator resumed the round")


def refuse_closed(journal: Journal, round_id: str) -> None:
    """Raises InvalidInput when the round's books are settled: a closed round never grows."""
    if journal.find(StatementKind.ROUND_SETTLED, round_id) is not None:
        raise InvalidInput(f"round {round_id} is closed: its books are settled", remedy="Freeze a new round.")


def stop(journal: Journal, clock: Clock, round_id: str, note: str, *, event: StopEvent | None = None) -> None:
    """Let no new attempt start; attempts in flight end normally. Not for a closed round.

    With an event that persons declare the stop is for good; without, it holds until the round is resumed.
    """
    refuse_closed(journal, round_id)
    _operator_act(journal, clock, round_id, "stop", note, event=event)


def _operator_act(
    journal: Journal,
    clock: Clock,
    subject: str,
    act: Literal["stop", "resume"],
    note: str,
    *,
    event: StopEvent | None = None,
) -> None:
    body = bodies.OperatorAct(act=act, note=note, event=event.value if event else None)
    count = sum(1 for s in journal.statements() if s.kind is StatementKind.OPERATOR_ACT)
    key = f"{StatementKind.OPERATOR_ACT}:{count + 1}"
    journal.append(StatementKind.OPERATOR_ACT, subject, body, at=clock.now(), key=key)


def resolve(journal: Journal, clock: Clock, run_id: str, decision: Literal["lost", "failed"], note: str) -> None:
    """Decide what a halted cell's attempt counts as; its money counts in full either way.

    `lost` is an infrastructure fault, after which the run may be tried again; `failed` ends the run as a failure.
    Raises InvalidInput when the run is not halted.
    """
    history = run_histories(journal.statements()).get(run_id)
    if history is None or history.halted is None:
        raise InvalidInput(f"logical run {run_id!r} is not halted", remedy="See `fairtrial status ROUND`.")
    act: Literal["resolve-lost", "resolve-failed"] = "resolve-lost" if decision == "lost" else "resolve-failed"
    body = bodies.OperatorAct(act=act, note=note, attempt_id=history.halted.attempt_id)
    key = f"{StatementKind.OPERATOR_ACT}:{run_id}:{history.halted.attempt_id}"
    journal.append(StatementKind.OPERATOR_ACT, run_id, body, at=clock.now(), key=key)
