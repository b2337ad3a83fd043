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
    """What the round has used. An attempt counts at its ceilings until it is settled, and for ever if its cost or its
    time stays unknown."""

    def __init__(self, plan: Plan) -> None:
        self.ceiling_requests = plan.spend_limits.requests_per_attempt
        self.ceiling_usd = Fraction(plan.spend_limits.usd_per_attempt)
        self.ceiling_ms = plan.sandbox_limits.agent_seconds * 1000
        self.runs: Set[str] = set()
        self.known: Set[str] = set()
        self.open: Dict[str, Optional[int]] = {}  # wall time of attempts in flight, once there is a result
        self.attempts = self.requests = self.wall_ms = 0
        self.usd = Fraction(0)

    def intend(self, attempt: str, run: str) -> None:
        """A new attempt: count it at its ceilings."""
        self.runs.add(run)
        self.known.add(attempt)
        self.open[attempt] = None
        self.attempts += 1
        self._count(1, self.ceiling_requests, self.ceiling_usd, self.ceiling_ms)

    def settle(self, attempt: str, settled: said.AttemptSettled) -> None:
        """The first settlement of an attempt: true figures in place of the ceilings, where they are known."""
        wall_ms = self.open.pop(attempt)
        if wall_ms is not None and settled.usd is not None:
            self._count(-1, self.ceiling_requests, self.ceiling_usd, self.ceiling_ms)
            self._count(1, settled.requests, Fraction(settled.usd), wall_ms)

    def _count(self, sign: int, requests: int, usd: Fraction, wall_ms: int) -> None:
        self.requests += sign * requests
        self.usd += sign * usd
        self.wall_ms += sign * wall_ms

    def beyond(self, caps: Caps) -> List[str]:
        """The caps that are exceeded, each with its figures."""
        return _excesses((len(self.runs), self.attempts, self.requests, self.wall_ms), self.usd, caps)


def _excesses(counts: Tuple[int, int, int, int], usd: Fraction, caps: Caps) -> List[str]:
    names = ("logical_runs", "attempts", "requests", "timeout_ms")
    found = [f"{name}: {used} of {cap}" for name, used, cap in zip(names, counts, _counts(caps)) if used > cap]
    return found if usd <= Fraction(caps.usd) else [*found, f"usd: {usd_text(usd)} of {caps.usd}"]


def _counts(caps: Caps) -> Tuple[int, int, int, int]:
    return caps.logical_runs, caps.attempts, caps.requests, caps.timeout_minutes * 60_000


def check_authorization(plan: Plan, manifest_digest: str, grants: List[Grant], log: List[Statement]) -> str:
    """(5) Replay the log: every new attempt fits, at its ceilings, under the newest grant that had begun."""
    for grant in grants:
        if (grant.manifest_digest, grant.round_id) != (manifest_digest, plan.round_id):
            raise Refused("a grant is for another manifest or round")
        wide = _excesses(_counts(grant.caps), Fraction(grant.caps.usd), plan.envelope)
        if wide:
            raise Refused(f"a grant is beyond the frozen envelope: {'; '.join(wide)}")
    meter = Meter(plan)
    for statement in log:
        claim, subject = statement.claim, statement.subject
        if isinstance(claim, said.AttemptIntended) and subject not in meter.known:
            begun = [grant for grant in grants if grant.authorized_at <= statement.at]
            if not begun or statement.at >= begun[-1].expires_at:
                raise Refused(f"{subject} was started when no grant was in force")
            meter.intend(subject, claim.run)
            over = meter.beyond(begun[-1].caps)
            if over:
                raise Refused(f"{subject} was started beyond the caps: {'; '.join(over)}")
        elif subject in meter.open and isinstance(claim, said.ResultAcknowledged):
            meter.open[subject] = claim.wall_ms
        elif subject in meter.open and isinstance(claim, said.AttemptSettled):
            meter.settle(subject, claim)
    return (
        f"{meter.attempts} attempts were covered, with {meter.requests} requests and {usd_text(meter.usd)} USD in all, "
        "unknown costs at their ceilings"
    )
