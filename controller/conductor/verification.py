"""Verify an attempt's patch in a fresh machine without a network, and destroy that machine."""

from __future__ import annotations

from typing import Final

from controller.conductor.history import AttemptHistory
from controller.conductor.world import World
from controller.destroy import destroy
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.plan import LogicalRun
from controller.domain.statement import StatementKind
from controller.domain.tree_stream import HarvestedTree, parse_tree_stream
from controller.errors import InvalidInput, SandboxLost, TreeRejected
from controller.lease import lease, verifier_spec

VERIFY_LEASES_MAX: Final = (
    3  # verification spends nothing, so a lost verifier machine is simply replaced, within reason
)
TREE_ARTIFACT: Final = "tree.jsonl"


def verify_attempt(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """Write the verdict. A harvest that can't be parsed is a failed gate, not an error."""
    bundle = world.bundles[run.task]
    harvested = _harvest(world, AttemptId(attempt.attempt_id))
    for lease_number in range(1, VERIFY_LEASES_MAX + 1):
        spec = verifier_spec(
            AttemptId(attempt.attempt_id),
            generation=lease_number + (world.epoch - 1) * VERIFY_LEASES_MAX,
            limits=world.manifest.sandbox_limits,
            image=world.manifest.images["vm-verifier"],
            owner=world.owner,
            verify_seconds=bundle.verify_seconds,
        )
        try:
            sandbox = lease(world.pool, world.journal, world.clock, spec)
            verdict, patch = world.verify(sandbox, bundle, harvested, world.patches)
            break
        except SandboxLost:
            if lease_number == VERIFY_LEASES_MAX:
                raise
        finally:
            destroy(world.pool, world.journal, world.clock, spec.name, generation=spec.generation)
    world.files.create_file(world.round_dir / "patches" / f"{attempt.attempt_id}.patch", patch)
    body = bodies.VerdictReached(verdict=verdict, verifier_image=world.manifest.images["vm-verifier"])
    world.journal.append(StatementKind.VERDICT, attempt.attempt_id, body, at=world.clock.now())


def _harvest(world: World, attempt_id: AttemptId) -> HarvestedTree | str:
    """The harvested tree, or why it can't be read."""
    limits = world.manifest.artifact_limits
    try:
        data = world.artifacts.read(attempt_id, TREE_ARTIFACT, bytes_max=limits.tree_bytes_max)
        return parse_tree_stream(data, limits)
    except (InvalidInput, TreeRejected) as error:
        return str(error)
