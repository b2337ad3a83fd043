"""Step 5: nothing was spent without permission."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Dict, List, Literal, Optional, Set, Tuple

from . import claims as said
from .log import Statement
from .money import usd_text
from .plan import Caps, Plan
from .refusal import Refused
from .shapes import Digest, Slug


@dataclass(frozen=True)
class Grant:
    """A signed permission."""

    round_id: Slug
    manifest_digest: Digest
    authorized_at: int
    expires_at: int
    caps: Caps
    schema_version: Literal["fairtrial.authorization/1"] = "fairtrial.authorization/1"


class Meter:
    """What the round has used. An attempt counts at its ceilings until it is settled, and for ever if its cost stays
    unknown. Of time, it always counts its whole timeout."""

    def __init__(self, plan: Plan) -> None:
        self.ceiling_requests = plan.spend_limits.requests_per_attempt
        self.ceiling_usd = Fraction(plan.spend_limits.usd_per_attempt)
        self.ceiling_ms = plan.sandbox_limits.agent_seconds * 1000
        self.runs: Set[str] = set()
        self.known: Set[str] = set()
        self.open: Set[str] = set()  # attempts in flight
        self.attempts = self.requests = 0
        self.usd = Fraction(0)

    def intend(self, attempt: str, run: str) -> None:
        """A new attempt: count it at its ceilings."""
        self.runs.add(run)
        self.known.add(attempt)
        self.open.add(attempt)
        self.attempts += 1
        self.requests += self.ceiling_requests
        self.usd += self.ceiling_usd

    def settle(self, attempt: str, settled: said.AttemptSettled) -> None:
        """The first settlement of an attempt: true figures in place of the ceilings, where they are known."""
        self.open.remove(attempt)
        if settled.usd is not None:
            self.requests += settled.requests - self.ceiling_requests
            self.usd += Fraction(settled.usd) - self.ceiling_usd

    def beyond(self, caps: Caps, *, more: int = 0, more_runs: int = 0) -> List[str]:
        """The caps that are exceeded, each with its figures; also with so many more attempts and logical runs."""
        attempts = self.attempts + more
        requests = self.requests + more * self.ceiling_requests
        counts = len(self.runs) + more_runs, attempts, requests, attempts * self.ceiling_ms
        return _excesses(counts, self.usd + more * self.ceiling_usd, caps)


def _excesses(counts: Tuple[int, int, int, int], usd: Fraction, caps: Caps) -> List[str]:
    names = ("logical_runs", "attempts", "requests", "timeout_ms")
    found = [f"{name}: {used} of {cap}" for name, used, cap in zip(names, counts, _counts(caps)) if used > cap]
    return found if usd <= Fraction(caps.usd) else [*found, f"usd: {usd_text(usd)} of {caps.usd}"]


def _counts(caps: Caps) -> Tuple[int, int, int, int]:
    return caps.logical_runs, caps.attempts, caps.requests, caps.timeout_minutes * 60_000


def check_authorization(plan: Plan, manifest_digest: str, grants: Dict[str, Grant], log: List[Statement]) -> str:
    """(5) Replay the log: every new attempt fits, at its ceilings, under the grant in force.

    A grant is in force from its statement on. Who stops for used-up caps must have come to where one more attempt was
    not covered.
    """
    for grant in grants.values():
        if (grant.manifest_digest, grant.round_id) != (manifest_digest, plan.round_id):
            raise Refused("a grant is for another manifest or round")
        wide = _excesses(_counts(grant.caps), Fraction(grant.caps.usd), plan.envelope)
        if wide:
            raise Refused(f"a grant is beyond the frozen envelope: {'; '.join(wide)}")
    meter = Meter(plan)
    in_force: Optional[Grant] = None
    has_lacked_cover = False
    for statement in log:
        claim, subject = statement.claim, statement.subject
        if isinstance(claim, said.RoundAuthorized):
            in_force = grants.get(claim.authorization_digest)
            if in_force is None:
                raise Refused(f"statement {statement.sequence} names a grant that is not in the bundle")
        elif isinstance(claim, said.AttemptIntended):
            if subject not in meter.known:
                _cover(meter, in_force, statement, claim.run)
        elif isinstance(claim, said.AttemptSettled) and subject in meter.open:
            meter.settle(subject, claim)
        elif isinstance(claim, said.RoundStopped) and claim.rule == "authorization" and not has_lacked_cover:
            raise Refused(f"statement {statement.sequence} stops the round for caps that were not reached")
        if in_force is not None and isinstance(claim, (said.RoundAuthorized, said.AttemptIntended)):
            more_runs = int(len(meter.runs) < len(plan.schedule))
            has_lacked_cover = has_lacked_cover or bool(meter.beyond(in_force.caps, more=1, more_runs=more_runs))
    return (
        f"{meter.attempts} attempts were covered, with {meter.requests} requests and {usd_text(meter.usd)} USD in all, "
        "unknown costs at their ceilings"
    )


def _cover(meter: Meter, grant: Optional[Grant], intent: Statement, run: str) -> None:
    if grant is None or not grant.authorized_at <= intent.at < grant.expires_at:
        raise Refused(f"{intent.subject} was started when no grant was in force")
    meter.intend(intent.subject, run)
    over = meter.beyond(grant.caps)
    if over:
        raise Refused(f"{intent.subject} was started beyond the caps: {'; '.join(over)}")
