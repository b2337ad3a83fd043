"""Whether the next attempt is covered by the authorization, counted the way a checker will count it."""

from __future__ import annotations

from collections.abc import Sequence

from controller.authorize import check_authorization
from controller.conductor.world import World
from controller.domain.authorization import attempt_ceiling, excesses
from controller.domain.statement import Statement
from controller.evidence.consumption import consumption


def authorization_gap(world: World, statements: Sequence[Statement], number: int) -> tuple[str, str] | None:
    """Why attempt `number` of a logical run may not start: the exceeded caps. None when it is covered.

    Raises NotAuthorized or AuthorizationExpired.
    """
    grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
    spend, sandbox = world.manifest.spend_limits, world.manifest.sandbox_limits
    ceiling = attempt_ceiling(spend, sandbox, opens_run=number == 1)
    over = excesses(grant.caps, consumption(statements, spend, sandbox).plus(ceiling))
    return ("authorization", "; ".join(over)) if over else None
