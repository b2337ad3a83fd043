"""Permission to spend: caps on one exact manifest until a date, and the rule that says what they still cover."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from controller.domain.ids import Digest, Slug
from controller.domain.instant import InstantMs
from controller.domain.limits import SandboxLimits, SpendLimits
from controller.domain.money import UsdText, usd_from_text, usd_to_text
from controller.domain.record import Record


class Caps(Record):
    """The most a round may use, each counted over all its attempts."""

    logical_runs: int = Field(ge=1)
    attempts: int = Field(ge=1)
    requests: int = Field(ge=1)
    usd: UsdText
    timeout_minutes: int = Field(ge=1)  # the sum of every attempt's fail-safe timeout, however soon it ended


class Consumed(Record):
    """What a round has used, or would use: an attempt in flight or of unknown cost counts with its ceilings.

    `timeout_ms` are fail-safe timeouts, not time that passed.
    """

    logical_runs: int = Field(default=0, ge=0)
    attempts: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    usd: UsdText = "0"
    timeout_ms: int = Field(default=0, ge=0)

    def plus(self, other: Consumed) -> Consumed:
        """The exact sum."""
        return Consumed(
            logical_runs=self.logical_runs + other.logical_runs,
            attempts=self.attempts + other.attempts,
            requests=self.requests + other.requests,
            usd=usd_to_text(usd_from_text(self.usd) + usd_from_text(other.usd)),
            timeout_ms=self.timeout_ms + other.timeout_ms,
        )


class Authorization(Record):
    """The signed grant. It binds one manifest by digest; another manifest needs another grant."""

    schema_version: Literal["fairtrial.authorization/1"] = "fairtrial.authorization/1"
    round_id: Slug
    manifest_digest: Digest
    authorized_at: InstantMs
    expires_at: InstantMs
    caps: Caps


def attempt_ceiling(spend: SpendLimits, sandbox: SandboxLimits, *, opens_run: bool) -> Consumed:
    """The most one attempt may use; `opens_run` for the first attempt of its logical run."""
    return Consumed(
        logical_runs=1 if opens_run else 0,
        attempts=1,
        requests=spend.requests_per_attempt,
        usd=spend.usd_per_attempt,
        timeout_ms=sandbox.agent_seconds * 1000,
    )


def excesses(caps: Caps, consumed: Consumed) -> tuple[str, ...]:
    """The caps that the consumption exceeds, each as `name: used of cap`; empty when everything is covered."""
    lines = [
        (name, used, cap)
        for name, used, cap in (
            ("logical_runs", consumed.logical_runs, caps.logical_runs),
            ("attempts", consumed.attempts, caps.attempts),
            ("requests", consumed.requests, caps.requests),
            ("timeout_ms", consumed.timeout_ms, caps.timeout_minutes * 60_000),
        )
        if used > cap
    ]
    texts = [f"{name}: {used} of {cap}" for name, used, cap in lines]
    if usd_from_text(consumed.usd) > usd_from_text(caps.usd):
        texts.append(f"usd: {consumed.usd} of {caps.usd}")
    return tuple(texts)


def beyond(caps: Caps, envelope: Caps) -> tuple[str, ...]:
    """The caps that are wider than the envelope's, each as `name: this of that`."""
    return excesses(
        envelope,
        Consumed(
            logical_runs=caps.logical_runs,
            attempts=caps.attempts,
            requests=caps.requests,
            usd=caps.usd,
            timeout_ms=caps.timeout_minutes * 60_000,
        ),
    )
