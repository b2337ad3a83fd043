"""What a round has consumed of its authorization, from the log. An attempt in flight counts with its ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller.authorize import check_authorization
from controller.conductor.history import AttemptHistory, run_histories
from controller.conductor.world import World
from controller.domain.authorization import Consumed, attempt_ceiling, excesses
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.statement import Statement

AUTHORIZATION: Final = Path("authorization.dsse.json")


def consumed(manifest: RoundManifest, statements: Sequence[Statement]) -> Consumed:
    """Everything used so far, with ceilings for what is not settled or of unknown cost."""
    total = Consumed()
    for history in run_histories(statements).values():
        for attempt in history.attempts:
            total = total.plus(_of_attempt(manifest, attempt))
    return total


def _of_attempt(manifest: RoundManifest, attempt: AttemptHistory) -> Consumed:
    ceiling = attempt_ceiling(manifest.spend_limits, manifest.sandbox_limits, opens_run=attempt.number == 1)
    if attempt.settled is None or attempt.settled.usd is None or attempt.result is None:
        return ceiling
    return Consumed(
        logical_runs=ceiling.logical_runs,
        attempts=1,
        requests=attempt.settled.requests,
        usd=attempt.settled.usd,
        wall_ms=attempt.result.wall_ms,
    )


def authorization_gap(
    world: World, statements: Sequence[Statement], run: LogicalRun, number: int
) -> tuple[str, str] | None:
    """Why the next attempt may not start: the exceeded caps. None when it is covered.

    Raises NotAuthorized or AuthorizationExpired.
    """
    grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
    manifest = world.manifest
    ceiling = attempt_ceiling(manifest.spend_limits, manifest.sandbox_limits, opens_run=number == 1)
    over = excesses(grant.caps, consumed(manifest, statements).plus(ceiling))
    return ("authorization", "; ".join(over)) if over else None
