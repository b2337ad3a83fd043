"""Verify an attempt's patch in a fresh machine without a network, and destroy that machine."""

from __future__ import annotations

from typing import Final

from controller.conductor.history import AttemptHistory
from controller.conductor.world import World
from controller.destroy import destroy
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.outcome import Gate, Verdict
from controller.domain.plan import LogicalRun, TaskEntry
from controller.domain.statement import StatementKind
from controller.domain.tree_stream import HarvestedTree, parse_tree_stream
from controller.errors import InvalidInput, SandboxLost, TreeRejected
from controller.lease import lease, verifier_spec
from controller.run.rules import TREE

WITHHELD: Final = "withheld while the task is sealed"
VERIFY_LEASES_MAX: Final = 3  # verification spends nothing, so a lost machine is simply replaced, within reason


def verify_attempt(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """Write the verdict. A harvest that can't be parsed is a failed gate, not an error.

    Raises SandboxLost when no verifier machine can be had, SealedKeyMissing when the task can't be opened for one: that
    is our trouble, and the round waits for us.
    """
    attempt_id = AttemptId(attempt.attempt_id)
    harvested = _harvest(world, attempt_id)
    judged: tuple[Verdict, bytes] | None = None
    for lease_number in range(1, VERIFY_LEASES_MAX + 1):
        judged = _judge_once(world, run, attempt_id, harvested, lease_number)
        if judged is not None:
            break
    verdict, patch = judged or (_machines_lost(world, run), b"")
    if verdict.patch_digest is not None:
        world.files.create_file(world.round_dir / "patches" / f"{attempt_id}.patch", patch)
    body = bodies.VerdictReached(
        verdict=verdict, verifier_image=world.manifest.images[world.manifest.machines.verifier]
    )
    world.journal.append(StatementKind.VERDICT, attempt_id, body, at=world.clock.now())


def _judge_once(
    world: World, run: LogicalRun, attempt_id: AttemptId, harvested: HarvestedTree | str, lease_number: int
) -> tuple[Verdict, bytes] | None:
    """One verdict from one fresh machine; None when the machine was lost while it judged."""
    spec = verifier_spec(
        attempt_id,
        generation=lease_number + (world.epoch - 1) * VERIFY_LEASES_MAX,
        limits=world.manifest.sandbox_limits,
        image=world.manifest.images[world.manifest.machines.verifier],
        owner=world.owner,
        verify_seconds=world.tasks.brief(run.task).verify_seconds,
    )
    try:
        sandbox = lease(world.pool, world.journal, world.clock, spec)
        try:
            # Only now, and for this one verdict, are the hidden cases of a sealed task opened.
            verdict, patch = world.verify(sandbox, world.tasks.bundle(run.task), harvested, world.patches)
            return _public(world.manifest.task(run.task), verdict), patch
        except SandboxLost:
            return None
    finally:
        destroy(world.pool, world.journal, world.clock, spec.name, generation=spec.generation)


def _public(task: TaskEntry, verdict: Verdict) -> Verdict:
    """The verdict as the log, which is published, may tell it: names of files and cases are a sealed task's content."""
    if task.sealed is None:
        return verdict
    gates = tuple(Gate(name=gate.name, passed=gate.passed, detail=WITHHELD) for gate in verdict.gates)
    output = verdict.output and verdict.output.model_copy(update={"failed": ()})
    return verdict.model_copy(update={"gates": gates, "changed_paths": (), "output": output})


def _machines_lost(world: World, run: LogicalRun) -> Verdict:
    """Machines that can be had but die whenever they judge this patch are this patch's doing, and no excuse."""
    detail = f"the verifier's machine was lost {VERIFY_LEASES_MAX} times while it judged this patch"
    return Verdict(
        passed=False,
        gates=(Gate(name="hidden-verifier", passed=False, detail=detail),),
        patch_digest=None,
        changed_paths=(),
        soundness=world.manifest.task(run.task).soundness,
    )


def _harvest(world: World, attempt_id: AttemptId) -> HarvestedTree | str:
    """The harvested tree, or why it can't be read."""
    limits = world.manifest.artifact_limits
    try:
        data = world.artifacts.read(attempt_id, TREE, bytes_max=limits.tree_bytes_max)
        return parse_tree_stream(data, limits)
    except (InvalidInput, TreeRejected) as error:
        return str(error)
