"""The check of a selection, offline, from the record and a manifest. The numbers are those of docs/holdout.md.

1. The record is signed by a trusted key, in canonical form.
2. So is the request inside it.
3. The manifest is the one the request names, or amends that one and names this record as its selection; its holdouts,
   in byte order of their digests, are the candidates; the commitment is not older than what it names.
4. The chain is one of the two pinned ones; the round is the first that was due a day after the commitment, or later;
   the fallback is the written one.
5. Three relays in three domains gave one and the same answer, none before the round was due.
6. The network signed it: points of the right subgroup, canonical, under the pinned key.
7. The randomness, the index and the task follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from controller.domain.beacon import CHAINS, Beacon, Chain, read_beacon
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs, instant_text
from controller.domain.keys import KeyRing
from controller.domain.plan import RoundManifest
from controller.errors import BeaconRejected, FairtrialError
from controller.evidence import envelope
from controller.evidence.canonical import canonical, loads, parse
from controller.evidence.check import CheckStep
from controller.evidence.holdout import (
    FALLBACK,
    LEAD_MS,
    REQUEST_TYPE,
    SELECTION_TYPE,
    HoldoutRequest,
    SelectionRecord,
    candidates,
    check_sites,
    chosen,
)
from controller.ports.relays import BeaconSignatures


@dataclass(frozen=True)
class HoldoutExhibits:
    """The files and what reads them. Properties raise EvidenceError."""

    record: bytes  # the envelope that `select` wrote
    manifest: bytes
    keys: KeyRing
    read_manifest: Callable[[bytes], RoundManifest]
    signatures: BeaconSignatures

    @cached_property
    def selection(self) -> SelectionRecord:
        payload = envelope.check(self.record, SELECTION_TYPE, self.keys, "selection")
        return parse(payload, SelectionRecord, "selection")

    @cached_property
    def request(self) -> HoldoutRequest:
        return read_request(self.selection.request.encode(), self.keys)

    @cached_property
    def chain(self) -> Chain:
        return pinned_chain(self.request)

    @cached_property
    def beacon(self) -> Beacon:
        """The one answer of every relay. Raises BeaconRejected when two differ."""
        number = self.request.beacon_round
        found = {read_beacon(one.body.encode(), self.chain, number, one.relay) for one in self.selection.answers}
        if len(found) > 1:
            raise BeaconRejected(f"relays gave {len(found)} different answers for round {number}")
        return found.pop()


def read_request(data: bytes, keys: KeyRing) -> HoldoutRequest:
    """The request in an envelope that a trusted key signed. Raises BadSignature, NotCanonical."""
    return parse(envelope.check(data, REQUEST_TYPE, keys, "request"), HoldoutRequest, "request")


def pinned_chain(request: HoldoutRequest) -> Chain:
    """The chain of the request as it is pinned here. Raises BeaconRejected when the request means another network."""
    chain = CHAINS[request.chain]
    if chain.hash.hex() != request.chain_hash:
        raise BeaconRejected(f"chain {request.chain!r} has the hash {chain.hash.hex()}, not {request.chain_hash}")
    return chain


def check_beacon(beacon: Beacon, chain: Chain, signatures: BeaconSignatures) -> None:
    """Raises BeaconRejected unless the network signed it."""
    signatures.check(chain.scheme, chain.public_key, beacon.message, beacon.signature)


def _record(exhibits: HoldoutExhibits) -> str:
    return f"signed; {len(exhibits.selection.answers)} answers, {exhibits.selection.task}"


def _request(exhibits: HoldoutExhibits) -> str:
    return f"signed; committed {instant_text(exhibits.request.committed_at)}"


def _manifest(exhibits: HoldoutExhibits) -> str:
    request = exhibits.request
    manifest = exhibits.read_manifest(exhibits.manifest)
    if sha256_digest(exhibits.manifest) == request.manifest_digest:
        if request.committed_at < manifest.frozen_at:
            raise BeaconRejected("the commitment claims to be older than the manifest it names")
        named, relation = manifest.round_id, "of the manifest that the request is bound to"
    else:
        named, relation = _amended(exhibits, manifest), "of an amendment that names this selection"
    if named != request.round_id:
        raise BeaconRejected(f"the manifest is of round {named}, the request of {request.round_id}")
    if candidates(manifest.tasks) != request.candidates:
        raise BeaconRejected("the candidates are not the manifest's holdouts in byte order of their digests")
    return f"{len(request.candidates)} holdouts {relation}"


def _amended(exhibits: HoldoutExhibits, manifest: RoundManifest) -> str:
    """The id of the round that the manifest amends, if that one is the request's and the choice is this record's."""
    wanted, amends = exhibits.request.manifest_digest, manifest.amends
    if amends is None or amends.manifest_digest != wanted:
        raise BeaconRejected(f"the request is bound to {wanted}, and the manifest neither is that nor amends it")
    digests = {
        "record_digest": sha256_digest(canonical(exhibits.selection)),
        "request_digest": sha256_digest(canonical(exhibits.request)),
    }
    # Only the manifests of one protocol have a selection, which the engine's view of a round leaves out.
    selection = loads(exhibits.manifest, "manifest").get("selection")
    if selection != digests | {"scenario": exhibits.selection.task}:
        raise BeaconRejected("the manifest amends the request's, but its selection is not this record's")
    return amends.round_id


def _round(exhibits: HoldoutExhibits) -> str:
    request, chain = exhibits.request, exhibits.chain
    first = chain.first_round_from(InstantMs(request.committed_at + LEAD_MS))
    if request.beacon_round != first:
        raise BeaconRejected(f"round {request.beacon_round} was named, the first one a day on is {first}")
    if request.fallback != FALLBACK:
        raise BeaconRejected("the fallback is not the written one")
    return f"round {first} of {chain.name}, due {instant_text(chain.due_at(first))}"


def _relays(exhibits: HoldoutExhibits) -> str:
    answers = exhibits.selection.answers
    sites = check_sites([answer.relay for answer in answers])
    due = exhibits.chain.due_at(exhibits.request.beacon_round)
    for answer in answers:
        if answer.received_at < due:
            raise BeaconRejected(f"{answer.relay} answered before the round was due")
    _ = exhibits.beacon
    return f"one answer from {', '.join(sites)}"


def _beacon(exhibits: HoldoutExhibits) -> str:
    check_beacon(exhibits.beacon, exhibits.chain, exhibits.signatures)
    return f"randomness {exhibits.beacon.randomness.hex()}"


def _selection(exhibits: HoldoutExhibits) -> str:
    found = chosen(exhibits.request, exhibits.chain, exhibits.beacon)
    if found.task != exhibits.selection.task:
        raise BeaconRejected(f"the beacon selects {found.task}, the record says {exhibits.selection.task}")
    place = exhibits.request.candidates.index(found)
    return f"{found.task}, index {place} of {len(exhibits.request.candidates)}"


STEPS: Final[tuple[tuple[str, Callable[[HoldoutExhibits], str]], ...]] = (
    ("record", _record),
    ("request", _request),
    ("manifest", _manifest),
    ("round", _round),
    ("relays", _relays),
    ("beacon", _beacon),
    ("selection", _selection),
)


def check_selection(exhibits: HoldoutExhibits) -> tuple[CheckStep, ...]:
    """Every step and what it saw. Raises BeaconRejected with number, name and finding of the first that fails."""
    steps: list[CheckStep] = []
    for number, (name, step) in enumerate(STEPS, start=1):
        try:
            steps.append(CheckStep(number=number, name=name, passed=True, detail=step(exhibits)))
        except FairtrialError as error:
            raise BeaconRejected(f"step {number} ({name}): {error}") from error
        except Exception as error:  # a hostile manifest may break any reader; whatever it breaks, it is refused
            raise BeaconRejected(f"step {number} ({name}): malformed: {type(error).__name__}: {error}"[:500]) from error
    return tuple(steps)
