"""Whether another attempt may start: stop rules and caps, counted as the log grows.

The count is kept up to date statement by statement; reading the whole log for every attempt would make a round's cost
grow with the square of its attempts.
"""

from __future__ import annotations

from controller.authorize import check_authorization, log_grant
from controller.conductor.world import World
from controller.domain.authorization import Authorization, attempt_ceiling, excesses
from controller.domain.bodies import RoundStopped
from controller.domain.statement import StatementKind
from controller.domain.stops import StopEvent
from controller.evidence.consumption import Tally
from controller.evidence.stops import StopWatch


class Wait:
    """Ask again: what is in flight might still leave room."""


class Admission:
    """One per controller. Not thread-safe: the caller holds the planning lock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tally = Tally(world.manifest.spend_limits, world.manifest.sandbox_limits)
        self._stops = StopWatch(world.manifest.stop_rules)
        self._next = 0
        self._logged: Authorization | None = None

    def refusal(self, number: int, *, others_at_work: bool) -> RoundStopped | Wait | None:
        """Why attempt `number` of a logical run may not start; None when it may.

        While others are at work, an attempt that only their ceilings stand against is to wait for what they really use.
        A rule that stops the round is written to the log, once. Raises NotAuthorized or AuthorizationExpired.
        """
        self.look()
        world = self._world
        reason = (
            self._stops.standing
            or self._stops.rate_card(world.rate_card_in_use(), world.manifest.rate_card_digest)
            or self._stops.error_share
            or self._stops.reconciliation
            or self._gap(number, others_at_work)
        )
        if isinstance(reason, RoundStopped) and self._stops.standing is None:
            self._write(reason)
        return reason

    def look(self) -> None:
        """Read on in the log, and write the stop that it asks for at once, whether or not another attempt waits."""
        for statement in self._world.journal.since(self._next):
            self._tally.add(statement)
            self._stops.add(statement)
            self._next = statement.sequence + 1
        found = self._stops.observed_model
        if found is not None and self._stops.written is None:
            self._write(found)

    def _write(self, reason: RoundStopped) -> None:
        world = self._world
        statement = world.journal.append(
            StatementKind.ROUND_STOPPED, world.manifest.round_id, reason, at=world.clock.now()
        )
        self._stops.add(statement)

    def _gap(self, number: int, others_at_work: bool) -> RoundStopped | Wait | None:
        world = self._world
        grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
        if grant != self._logged:  # one that was given since the start may not be in the log yet
            log_grant(world.journal, grant, at=world.clock.now())
            self._logged = grant
        spend, sandbox = world.manifest.spend_limits, world.manifest.sandbox_limits
        ceiling = attempt_ceiling(spend, sandbox, opens_run=number == 1)
        over = excesses(grant.caps, self._tally.consumed.plus(ceiling))
        if over and others_at_work and not excesses(grant.caps, self._tally.settled.plus(ceiling)):
            return Wait()
        return RoundStopped(rule=StopEvent.AUTHORIZATION, detail="; ".join(over)) if over else None
