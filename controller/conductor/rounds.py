"""What an operator does with a round: start or resume, stop, resolve, settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from controller.authorize import check_authorization
from controller.conductor.history import run_histories
from controller.conductor.running import finished
from controller.conductor.status import RoundStatus, round_status
from controller.conductor.stops import AUTHORIZATION, OPERATOR, standing_stop
from controller.conductor.workflow import conduct_round
from controller.conductor.world import World
from controller.destroy import sweep
from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.plan import RoundManifest
from controller.domain.statement import StatementKind
from controller.errors import CapReached, InvalidInput, RoundHalted
from controller.evidence.canonical import canonical
from controller.ports.clock import Clock
from controller.ports.journal import Journal
from controller.settle import settle_round

DATABASE: Final = "workflows.sqlite"


def start(world: World, *, fleet_size: int, on_progress: Callable[[RoundStatus], None]) -> RoundStatus:
    """Conduct every unfinished logical run, and return how the round stands.

    Raises NotAuthorized before anything is leased; RoundHalted when cells wait for a person; CapReached when the
    authorization is used up.
    """
    grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
    refuse_closed(world.journal, world.manifest.round_id)
    _record_start(world, sha256_digest(canonical(grant)))
    sweep(world.pool, world.clock)
    conduct_round(
        world,
        world.round_dir / DATABASE,
        fleet_size=fleet_size,
        on_progress=lambda: on_progress(round_status(world.manifest, world.journal.statements())),
    )
    status = round_status(world.manifest, world.journal.statements())
    if not finished(world):
        if status.halted:
            cells = "\n".join(f"{cell.run}: {cell.detail}" for cell in status.cells if cell.state == "halted")
            raise RoundHalted(f"{status.halted} of {status.runs} cells are halted\n{cells}")
        stopped = standing_stop(world.journal.statements())
        if stopped is not None and stopped.rule == AUTHORIZATION:
            raise CapReached(f"round {status.round_id} stopped: {status.stopped_by}")
    return status


def _record_start(world: World, authorization_digest: str) -> None:
    body = bodies.RoundStarted(
        manifest_digest=world.manifest_digest,
        authorization_digest=authorization_digest,
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


def stop(journal: Journal, clock: Clock, round_id: str, note: str) -> None:
    """Ask the round to stop: no new attempt starts, attempts in flight end normally. Not for a closed round."""
    refuse_closed(journal, round_id)
    _operator_act(journal, clock, round_id, "stop", note)


def _operator_act(journal: Journal, clock: Clock, subject: str, act: Literal["stop", "resume"], note: str) -> None:
    body = bodies.OperatorAct(act=act, note=note)
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


def settle(manifest: RoundManifest, journal: Journal, clock: Clock) -> bodies.RoundSettled:
    """Close the books and the round: totals over every attempt, counts over every predeclared logical run.

    Raises InvalidInput while attempts are in flight, or while runs wait and nothing has stopped the round.
    """
    statements = journal.statements()
    histories = run_histories(statements)
    waiting = [a.attempt_id for h in histories.values() for a in h.attempts if a.settled is None]
    found = round_status(manifest, statements)
    if waiting or (found.scored < found.runs and found.stopped_by is None):
        raise InvalidInput(
            f"round {manifest.round_id} is not over: {found.scored} of {found.runs} logical runs are scored, "
            f"{len(waiting)} attempts are not settled",
            remedy="Run `fairtrial resume ROUND`; to end the round as it is, `fairtrial stop ROUND` first.",
        )
    body = settle_round({run: [a.settled for a in h.attempts if a.settled] for run, h in histories.items()})
    journal.append(StatementKind.ROUND_SETTLED, manifest.round_id, body, at=clock.now())
    outcomes = Counter(cell.state for cell in found.cells)
    counts = {name: outcomes[name] for name in ("success", "failure", "invalid")}
    closed = bodies.RoundClosed(**counts, missing=found.runs - sum(counts.values()))
    journal.append(StatementKind.ROUND_CLOSED, manifest.round_id, closed, at=clock.now())
    return body
