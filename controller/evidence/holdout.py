"""The records of a selection by public randomness: what is committed to before the beacon, and what it chose.

The request fixes everything that a person could otherwise decide afterwards: the candidates and their order, the chain,
the round, the rule of the draw, and what happens when the round does not come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field

from controller.domain.beacon import Beacon, Chain, ChainName
from controller.domain.ids import Digest, Slug, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.plan import RoundManifest, TaskEntry
from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical
from controller.evidence.holdout_draw import RULE, draw

REQUEST_TYPE: Final = "application/vnd.fairtrial.holdout-request+json"
SELECTION_TYPE: Final = "application/vnd.fairtrial.holdout-selection+json"

LEAD_MS: Final = 24 * 3_600_000  # long enough to publish a commitment, and to have it witnessed, before the beacon
RELAYS: Final = 3
ANSWER_BYTES_MAX: Final = 4096  # the longest answer we know of is 500 bytes
_LAST_MS: Final = 253_402_300_799_999  # of the year 9999, the last that has a date
_URL: Final = re.compile(r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::[1-9][0-9]{0,4})?")
_LOOPBACK: Final = re.compile(r"127(?:\.[0-9]{1,3}){3}")

FALLBACK: Final = (
    "The committed round counts however late it is published, and a relay that is missing is asked again. If the chain "
    "ends without that round, nothing is selected under this commitment: the plan is frozen anew under another round "
    "id, and its later beacon follows from a new commitment by the same rule. No other beacon takes its place."
)


class Candidate(Record):
    """A holdout of the manifest. The digest is of the canonical bytes of its entry there."""

    task: Slug
    digest: Digest


class HoldoutRequest(Record):
    """The commitment. One per round id; signed and published before the beacon."""

    schema_version: Literal["fairtrial.holdout-request/1"] = "fairtrial.holdout-request/1"
    round_id: Slug
    manifest_digest: Digest
    candidates: tuple[Candidate, ...] = Field(min_length=1)
    committed_at: InstantMs = Field(ge=0, le=_LAST_MS)
    chain: ChainName
    chain_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    beacon_round: int = Field(ge=1)  # computed: the first that is due a day after `committed_at` or later
    rule: Literal["holdout-select/v1"] = RULE
    fallback: str = FALLBACK


class RelayAnswer(Record):
    """What one relay said, as it said it."""

    relay: str = Field(max_length=300)
    received_at: InstantMs = Field(ge=0, le=_LAST_MS)
    body: str = Field(max_length=ANSWER_BYTES_MAX)


class SelectionRecord(Record):
    """What the beacon chose, with all that is needed to choose again. `request` is the signed envelope."""

    schema_version: Literal["fairtrial.holdout-selection/1"] = "fairtrial.holdout-selection/1"
    request: str
    answers: tuple[RelayAnswer, ...] = Field(min_length=RELAYS, max_length=RELAYS)
    task: Slug


def candidates(tasks: Sequence[TaskEntry]) -> tuple[Candidate, ...]:
    """The holdouts among the tasks in byte order of their digests: an order that nobody chose."""
    found = [
        Candidate(task=task.id, digest=sha256_digest(canonical(task))) for task in tasks if task.visibility == "holdout"
    ]
    return tuple(sorted(found, key=lambda candidate: candidate.digest))


def request_of(manifest: RoundManifest, manifest_digest: str, chain: Chain, *, at: InstantMs) -> HoldoutRequest:
    """The commitment to the first round of the chain that is due a day after `at`, or later.

    Raises InvalidInput for a manifest without holdouts.
    """
    named = candidates(manifest.tasks)
    if not named:
        raise InvalidInput(
            f"round {manifest.round_id}: no task of the manifest is a holdout",
            remedy='Give the tasks that may be chosen visibility = "holdout", then freeze the plan.',
        )
    return HoldoutRequest(
        round_id=manifest.round_id,
        manifest_digest=manifest_digest,
        candidates=named,
        committed_at=at,
        chain=chain.name,
        chain_hash=chain.hash.hex(),
        beacon_round=chain.first_round_from(InstantMs(at + LEAD_MS)),
    )


def chosen(request: HoldoutRequest, chain: Chain, beacon: Beacon) -> Candidate:
    """The candidate that the beacon selects. Pure."""
    return request.candidates[draw(chain.hash, beacon, request.manifest_digest, len(request.candidates))]


def relay_url(relay: str, chain: Chain, beacon_round: int) -> str:
    """Where a relay serves that beacon."""
    return f"{relay}/{chain.hash.hex()}/public/{beacon_round}"


def relay_site(relay: str) -> str:
    """The last two labels of the relay's host: two hosts that differ in them lie in different registrable domains.

    Hosts that share them may still be strangers (`a.co.uk`, `b.co.uk`); they count as one, which errs on the safe side.
    Raises InvalidInput for anything but `https://host[:port]`; http only to this machine, whose addresses are sites.
    """
    match = _URL.fullmatch(relay)
    if match is None:
        raise InvalidInput(f"relay {relay[:100]!r}: not of the form https://host.domain[:port]")
    protocol, host = match[1], match[2]
    if _LOOPBACK.fullmatch(host):
        return host
    labels = host.split(".")
    if protocol != "https":
        raise InvalidInput(f"relay {relay[:100]!r}: only https leaves this machine")
    if labels[-1].isdigit():
        raise InvalidInput(f"relay {relay[:100]!r}: an address has no domain; name the host")
    return ".".join(labels[-2:])


def check_sites(relays: Sequence[str]) -> tuple[str, ...]:
    """The domains of the relays. Raises InvalidInput unless there are at least three, all different."""
    sites = tuple(relay_site(relay) for relay in relays)
    twice = sorted({site for site in sites if sites.count(site) > 1})
    if twice:
        raise InvalidInput(f"relays: two of them lie in {twice[0]}, which is one voice")
    if len(sites) < RELAYS:
        raise InvalidInput(f"relays: {len(sites)} named, {RELAYS} in different domains are needed")
    return sites
