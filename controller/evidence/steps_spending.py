"""Step 5: nothing was spent without permission."""

from __future__ import annotations

from typing import Final

from controller.domain import bodies
from controller.domain.authorization import Authorization, Consumed, attempt_ceiling, beyond, excesses
from controller.domain.statement import Statement, StatementKind
from controller.domain.stops import StopEvent
from controller.errors import BundleRejected
from controller.evidence.claims import claim
from controller.evidence.consumption import Tally
from controller.evidence.exhibits import Exhibits

_CHANGES_COVER: Final = frozenset({StatementKind.ROUND_AUTHORIZED, StatementKind.ATTEMPT_INTENDED})


def check_authorization(exhibits: Exhibits) -> str:
    """(5) Replay the log: each new attempt fitted under the grant in force, with ceilings for those in flight.

    A grant is in force from its statement on, so that none can be made up afterwards.
    """
    manifest = exhibits.manifest
    for each in exhibits.grants:
        if (each.manifest_digest, each.round_id) != (exhibits.manifest_digest, manifest.round_id):
            raise BundleRejected("a grant is for another manifest or round")
        if wide := beyond(each.caps, manifest.envelope):
            raise BundleRejected(f"a grant is beyond the frozen envelope: {'; '.join(wide)}")
    spend, sandbox = manifest.spend_limits, manifest.sandbox_limits
    tally = Tally(spend, sandbox)
    grant: Authorization | None = None
    has_lacked_cover = False  # an attempt that would have been one too many was never covered
    for statement in exhibits.statements:
        match statement.kind:
            case StatementKind.ROUND_AUTHORIZED:
                grant = exhibits.grants_by_digest.get(claim(statement, bodies.RoundAuthorized).authorization_digest)
                if grant is None:
                    raise BundleRejected(f"statement {statement.sequence} names a grant that is not in the bundle")
            case StatementKind.ATTEMPT_INTENDED if not tally.has_attempt(statement.subject):
                run = claim(statement, bodies.AttemptIntended).run
                ceiling = attempt_ceiling(spend, sandbox, opens_run=tally.opens_run(run))
                _check_cover(grant, statement, tally.consumed.plus(ceiling))
            case StatementKind.ROUND_STOPPED:
                rule = claim(statement, bodies.RoundStopped).rule
                if rule == StopEvent.AUTHORIZATION and not has_lacked_cover:
                    raise BundleRejected(
                        f"statement {statement.sequence} stops the round for caps that were not reached"
                    )
        tally.add(statement)
        if statement.kind in _CHANGES_COVER and grant is not None:
            is_unbegun = tally.consumed.logical_runs < len(manifest.schedule)  # a logical run that could be begun
            one_more = tally.consumed.plus(attempt_ceiling(spend, sandbox, opens_run=is_unbegun))
            has_lacked_cover = has_lacked_cover or bool(excesses(grant.caps, one_more))
    used = tally.consumed
    return (
        f"{used.attempts} attempts were covered, with {used.requests} requests and {used.usd} USD in all, "
        "unknown costs at their ceilings"
    )


def _check_cover(grant: Authorization | None, intent: Statement, with_ceiling: Consumed) -> None:
    if grant is None or not grant.authorized_at <= intent.at < grant.expires_at:
        raise BundleRejected(f"{intent.subject} was started when no grant was in force")
    over = excesses(grant.caps, with_ceiling)
    if over:
        raise BundleRejected(f"{intent.subject} was started beyond the caps: {'; '.join(over)}")
