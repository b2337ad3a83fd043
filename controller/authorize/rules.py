"""What a grant still covers. Pure."""

from __future__ import annotations

from fractions import Fraction

from controller.domain.authorization import Authorization, Caps, Consumed, excesses
from controller.domain.instant import InstantMs
from controller.domain.money import usd_from_text, usd_to_text
from controller.errors import AuthorizationExpired, InvalidInput, NotAuthorized


def remaining(caps: Caps, consumed: Consumed) -> Consumed:
    """What is left under each cap; zero, never less, where a cap is reached."""
    left = usd_from_text(caps.usd) - usd_from_text(consumed.usd)
    return Consumed(
        logical_runs=max(0, caps.logical_runs - consumed.logical_runs),
        attempts=max(0, caps.attempts - consumed.attempts),
        requests=max(0, caps.requests - consumed.requests),
        usd=usd_to_text(max(Fraction(0), left)),
        timeout_ms=max(0, caps.timeout_minutes * 60_000 - consumed.timeout_ms),
    )


def next_is_covered(caps: Caps, consumed: Consumed, ceiling: Consumed) -> bool:
    """True when another attempt that uses its whole ceiling would stay under every cap."""
    return not excesses(caps, consumed.plus(ceiling))


def check_in_force(grant: Authorization, manifest_digest: str, at: InstantMs) -> Authorization:
    """Raises NotAuthorized for another manifest or a time before the grant, AuthorizationExpired after its end."""
    if grant.manifest_digest != manifest_digest:
        raise NotAuthorized(f"the grant is for manifest {grant.manifest_digest}, not {manifest_digest}")
    if at < grant.authorized_at:
        raise NotAuthorized(f"the grant begins at {grant.authorized_at} ms and the clock says {at} ms")
    if at >= grant.expires_at:
        raise AuthorizationExpired(f"the grant for round {grant.round_id} expired at {grant.expires_at} ms")
    return grant


def check_expiry(authorized_at: InstantMs, expires_at: InstantMs) -> None:
    """Raises InvalidInput for a grant that would be over before it begins."""
    if expires_at <= authorized_at:
        raise InvalidInput(f"expires_at: {expires_at} ms is not after {authorized_at} ms, when the grant begins")
