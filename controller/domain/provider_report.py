"""What a provider's usage report says of one logical run, and what follows from it, in a form that is published."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import Field

from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.record import Record
from controller.domain.usage import Usage, ZeroBillProof

MINUTE_MS: Final = 60_000


class Figure(StrEnum):
    """What a sum of money is. Only an exact or an estimated one is a total; a floor never enters a headline."""

    EXACT = "exact"  # every request has its usage record or its zero-bill proof
    FLOOR = "floor"  # some cost is unknown: what is settled, and not less
    ESTIMATED = "estimated"  # a total, but for requests whose usage was assigned from the provider's report


class Finding(StrEnum):
    """How the records of one logical run compare with the provider's report. The last three make the run invalid."""

    NOT_COMPARED = "not-compared"  # no report speaks of the run, or not of all its minutes: nothing follows
    AGREES = "agrees"  # every class sums to the same, so that what was unknown cost nothing
    ASSIGNED = "assigned"  # what the provider has beyond the records belongs to requests of unknown cost, one by one
    PROVIDER_MORE = "provider-more"
    PROVIDER_LESS = "provider-less"
    OFF_LANE = "off-lane"


REFUTED: Final = frozenset({Finding.PROVIDER_MORE, Finding.PROVIDER_LESS, Finding.OFF_LANE})


class ReportedUsage(Record):
    """Usage of one key in one minute under one set of conditions. Null for what the report was not asked to tell."""

    minute: InstantMs
    model: str
    tier: str | None
    speed: str | None
    geo: str | None
    usage: Usage
    requests: int | None = Field(ge=0)


class ReportedSpan(Record):
    """Whole minutes of which the report has every bucket, from `from_at` up to and without `until_at`."""

    from_at: InstantMs
    until_at: InstantMs


class ProviderEvidence(Record):
    """What the reports say of one logical run: the files by digest, what they cover, the usage of the run's keys."""

    reports: tuple[Digest, ...]
    covered: tuple[ReportedSpan, ...]
    dedicated: bool  # no other logical run used a key of this one
    usage: tuple[ReportedUsage, ...]


class RequestResolved(Record):
    """What became of a request of unknown cost. Its row in the ledger stays as it is."""

    attempt_id: str
    sequence: int = Field(ge=1)
    proof: ZeroBillProof | None  # the provider has no usage for it
    assigned: Usage | None  # or: the usage that can be no other request's
    usd: UsdText
