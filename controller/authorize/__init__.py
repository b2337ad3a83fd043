"""Authorize: a signed, digest-bound grant with caps, without which no attempt may start.

Input: the digest of a frozen manifest, caps and an expiry. Output: `authorization.dsse.json` in the round's directory.
Invariants: a grant binds one manifest; grants are never altered, a later one takes the place of an earlier one; a grant
is in force from its statement in the log on; every attempt is covered with its ceilings before it starts.
"""

from controller.authorize.rules import next_is_covered, remaining
from controller.authorize.step import authorize, check_authorization, grant_paths, log_grant

__all__ = ["authorize", "check_authorization", "grant_paths", "log_grant", "next_is_covered", "remaining"]
