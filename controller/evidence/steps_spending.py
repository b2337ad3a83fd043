"""Step 5: nothing was spent without permission."""

from __future__ import annotations

from collections.abc import Sequence

from controller.domain import bodies
from controller.domain.authorization import Authorization, attempt_ceiling, beyond, excesses
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected
from controller.evidence.claims import claim
from controller.evidence.consumption import Tally
from controller.evidence.exhibits import Exhibits


def check_authorization(exhibits: Exhibits) -> str:
    """(5) Replay the log: each new attempt fitted under the grant in force, with ceilings for those in flight."""
    manifest = exhibits.manifest
    for grant in exhibits.grants:
        if (grant.manifest_digest, grant.round_id) != (exhibits.manifest_digest, manifest.round_id):
            raise BundleRejected("a grant is for another manifest or round")
        if wide := beyond(grant.caps, manifest.envelope):
            raise BundleRejected(f"a grant is beyond the frozen envelope: {'; '.join(wide)}")
    tally = Tally(manifest.spend_limits, manifest.sandbox_limits)
    for statement in exhibits.statements:
        if statement.kind is StatementKind.ATTEMPT_INTENDED and not tally.has_attempt(statement.subject):
            grant = _grant_in_force(exhibits.grants, statement)
            run = claim(statement, bodies.AttemptIntended).run
            ceiling = attempt_ceiling(manifest.spend_limits, manifest.sandbox_limits, opens_run=tally.opens_run(run))
            over = excesses(grant.caps, tally.consumed.plus(ceiling))
            if over:
                raise BundleRejected(f"{statement.subject} was started beyond the caps: {'; '.join(over)}")
        tally.add(statement)
    used = tally.consumed
    return (
        f"{used.attempts} attempts were covered, with {used.requests} requests and {used.usd} USD in all, "
        "unknown costs at their ceilings"
    )


def _grant_in_force(grants: Sequence[Authorization], statement: Statement) -> Authorization:
    """The newest grant that had begun; it must not have ended."""
    begun = [grant for grant in grants if grant.authorized_at <= statement.at]
    if not begun or statement.at >= begun[-1].expires_at:
        raise BundleRejected(f"{statement.subject} was started when no grant was in force")
    return begun[-1]
