"""Selection of a holdout by public randomness: commit, select, check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from controller.adapters.bls_arkworks import ArkworksSignatures
from controller.adapters.signer_file import read_keys
from controller.conductor.recompute import RoundRecompute
from controller.domain.beacon import CHAINS, ChainName
from controller.domain.ids import sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.evidence.bundle import INDEX, KEYS, MANIFEST
from controller.evidence.canonical import canonical, parse
from controller.evidence.check import TRUST_TEXT, CheckStep, Trust, choose_keys
from controller.evidence.envelope import sign
from controller.evidence.holdout import (
    REQUEST_TYPE,
    SELECTION_TYPE,
    HoldoutRequest,
    SelectionRecord,
    check_sites,
    chosen,
    request_of,
)
from controller.evidence.holdout_check import HoldoutExhibits, check_selection, pinned_chain, read_request
from controller.freeze import load_frozen
from controller.ports.clock import Clock
from controller.ports.relays import Relays
from controller.protocols.optimizer_matrix.candidate import AmendedManifest, CandidateFreeze, DrawnHoldout
from controller.settings import Settings
from controller.wiring.beacons import gather
from controller.wiring.inputs import read_input
from controller.wiring.tools import local_files, publisher

RECORD_BYTES_MAX: Final = 16 * 2**20  # a request names every holdout, and a corpus has at most some thousand tasks


@dataclass(frozen=True)
class Selected:
    """What `select` wrote, and what it heard from relays whose answer it could not use."""

    candidate: CandidateFreeze
    candidate_path: Path
    faults: tuple[str, ...]


class HoldoutReport(Record):
    """A selection that passed its check. `trust` says whose word the signatures are."""

    schema_version: Literal["fairtrial.holdout-check/1"] = "fairtrial.holdout-check/1"
    round_id: str
    task: str
    trust: Trust
    trust_text: str
    steps: tuple[CheckStep, ...]


def commit_holdout(settings: Settings, round_dir: Path, chain: ChainName, out: Path, clock: Clock) -> HoldoutRequest:
    """Sign and write the one commitment of this round. Raises InvalidInput when there is one already."""
    frozen = load_frozen(round_dir)
    request = request_of(frozen.manifest, frozen.digest, CHAINS[chain], at=clock.now())
    kept = settings.holdouts_dir / f"{request.round_id}.dsse.json"
    if kept.exists():
        raise InvalidInput(
            f"round {request.round_id} is committed already, and a second commitment would be a choice: {kept}",
            remedy="Use the request that stands there; `fairtrial holdout select` reads it.",
        )
    if out.exists():
        raise InvalidInput(f"{out} exists; it is never overwritten", remedy="Name a file that does not exist.")
    data = sign(REQUEST_TYPE, canonical(request), publisher(settings))
    local_files().create_file(kept, data)  # first, and never over another: of two at once, one is refused
    local_files().create_file(out, data)
    return request


def select_holdout(
    settings: Settings, request_path: Path, out: Path, relays: Sequence[str], clock: Clock, port: Relays
) -> Selected:
    """Ask the relays for the committed beacon and write the signed record and the candidate freeze.

    Raises BeaconUnavailable when it is too early or too few relays answer, BeaconRejected when two valid ones differ.
    """
    check_sites(relays)
    signer = publisher(settings)
    data = read_input(request_path, bytes_max=RECORD_BYTES_MAX)
    request = read_request(data, KeyRing(keys=(signer.key,)))
    chain = pinned_chain(request)
    beacon, answers, faults = gather(relays, chain, request.beacon_round, clock, port)
    task = chosen(request, chain, beacon).task
    record = canonical(SelectionRecord(request=data.decode(), answers=answers, task=task))
    candidate = CandidateFreeze(
        amends=AmendedManifest(round_id=request.round_id, manifest_digest=request.manifest_digest),
        selection=DrawnHoldout(
            scenario=task, record_digest=sha256_digest(record), request_digest=sha256_digest(canonical(request))
        ),
    )
    candidate_path = out.with_name(f"{out.name}.candidate.json")
    local_files().create_file(out, sign(SELECTION_TYPE, record, signer))
    local_files().create_file(candidate_path, canonical(candidate))
    return Selected(candidate, candidate_path, faults)


def check_holdout(
    settings: Settings, record_path: Path, *, manifest: Path | None, bundle: Path | None, key: Path | None
) -> HoldoutReport:
    """Check a selection offline. Raises BeaconRejected naming the step that refuses it."""
    if (manifest is None) == (bundle is None):
        raise InvalidInput("give --bundle DIR or --manifest FILE", remedy="See `fairtrial holdout check --help`.")
    record = read_input(record_path, bytes_max=RECORD_BYTES_MAX)
    own = settings.keys_dir / "publisher.pem"
    keys, trust = choose_keys(
        {INDEX: record},  # it looks at who signed the envelope, which is the record here
        pinned=read_keys(key) if key else None,
        local=KeyRing(keys=(publisher(settings).key,)) if own.is_file() else None,
    )
    if keys is None:
        if bundle is None:
            raise InvalidInput("a manifest brings no key", remedy="Give the publisher's public keys with --key.")
        keys = parse(read_input(bundle / KEYS), KeyRing, KEYS)
    exhibits = HoldoutExhibits(
        record=record,
        manifest=read_input(manifest or (bundle or Path()) / MANIFEST),
        keys=keys,
        read_manifest=RoundRecompute().manifest,
        signatures=ArkworksSignatures(),
    )
    steps = check_selection(exhibits)
    return HoldoutReport(
        round_id=exhibits.request.round_id,
        task=exhibits.selection.task,
        trust=trust,
        trust_text=TRUST_TEXT[trust],
        steps=steps,
    )
