"""Logical runs as durable workflows on DBOS. It decides when; only the journal decides whether an effect happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dbos import DBOS, SetWorkflowID, WorkflowHandle

from controller.conductor import running
from controller.conductor.attempt import ATTEMPT_STEPS
from controller.conductor.world import World
from controller.errors import FairtrialError

QUEUE: Final = "logical-runs"
POLL_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 1.0  # a look reads the log; an attempt takes a minute at least
UNFINISHED: Final = frozenset({"PENDING", "ENQUEUED", "DELAYED"})


# The engine stores and replays arguments, so a workflow is given strings and finds its world by the round's name.
_runners: Final[dict[str, running.Runner]] = {}


@DBOS.workflow()
def conduct(round_id: str, run_id: str) -> str:
    """Work on one logical run until it is scored, halted or stopped."""
    while True:
        planned = plan(round_id, run_id)
        if planned in (running.SCORED, running.HALTED, running.STOPPED):
            return planned
        for step in ATTEMPT_STEPS:
            if act(round_id, run_id, planned, step.name) == running.HALTED:
                return running.HALTED


@DBOS.step()
def plan(round_id: str, run_id: str) -> str:
    """See `Runner.plan_next`."""
    return _runners[round_id].plan_next(run_id)


@DBOS.step()
def act(round_id: str, run_id: str, attempt: str, step_name: str) -> str:
    """See `Runner.act`."""
    return _runners[round_id].act(run_id, attempt, step_name)


def conduct_round(world: World, database: Path, *, fleet_size: int, on_progress: Callable[[], None]) -> dict[str, str]:
    """Work on every unfinished logical run; returns what became of each.

    Workflows that a killed controller left are recovered by the engine under their own ids; one that ended (halted,
    stopped or failed) is followed by a new one under the next number. `on_progress` is called about once per second.
    """
    DBOS(
        config={
            "name": "fairtrial",
            "system_database_url": f"sqlite:///{database}",
            "executor_id": "controller",  # one controller per round: the round's lock file sees to that
            "application_version": "1",  # a resumed round must be recovered by whatever version resumes it
            "log_level": "CRITICAL",  # failures are raised to the caller below, once
        }
    )
    round_id = world.manifest.round_id
    _runners[round_id] = running.Runner(world)
    DBOS.launch()
    try:
        DBOS.register_queue(QUEUE, worker_concurrency=fleet_size, polling_interval_sec=POLL_SECONDS)
        handles = {run.id: _handle(round_id, run.id) for run in world.manifest.schedule}
        return _wait(world, handles, on_progress)
    finally:
        DBOS.destroy()
        del _runners[round_id]


def _handle(round_id: str, run_id: str) -> WorkflowHandle[str]:
    past = sorted(DBOS.list_workflows(workflow_id_prefix=f"{run_id}#"), key=lambda status: int(status.created_at or 0))
    if past and past[-1].status in UNFINISHED:
        return DBOS.retrieve_workflow(past[-1].workflow_id)
    with SetWorkflowID(f"{run_id}#{len(past) + 1}"):
        return DBOS.enqueue_workflow(QUEUE, conduct, round_id, run_id)


def _wait(world: World, handles: dict[str, WorkflowHandle[str]], on_progress: Callable[[], None]) -> dict[str, str]:
    """Results by logical run. A failure that is nobody's outcome (a full disk, a lost machine) is raised last."""
    waiting, results = dict(handles), dict[str, str]()
    failure: FairtrialError | None = None
    while waiting:
        on_progress()
        ended = [run_id for run_id, handle in waiting.items() if handle.get_status().status not in UNFINISHED]
        for run_id in ended:
            try:
                results[run_id] = waiting.pop(run_id).get_result()
            except FairtrialError as error:
                failure, results[run_id] = failure or error, "failed"
        world.clock.sleep(LOOK_SECONDS)
    on_progress()
    if failure is not None:
        raise failure
    return results
