"""A frozen round with holdouts, and a request whose beacon is one of the recorded ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.adapters.files_durable import LocalFiles
from controller.domain.beacon import CHAINS, ChainName
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.keys import KeyRing
from controller.evidence.bundle import KEYS, MANIFEST, MANIFEST_ENVELOPE
from controller.evidence.canonical import canonical, dumps
from controller.evidence.envelope import MANIFEST_TYPE, sign
from controller.evidence.holdout import LEAD_MS, REQUEST_TYPE, HoldoutRequest, request_of
from controller.freeze import freeze, load_frozen
from controller.ports.signer import Signer
from tests.world.clock import SetClock
from tests.world.recorded_round import START, inputs

FROZEN_AT = 1_600_000_000_000  # in 2020, before the recorded beacons that are committed to
HOLDOUTS = ("h-one", "h-two", "h-three", "h-four")


@dataclass(frozen=True)
class HoldoutRound:
    """The round's directory and what its manifest says."""

    directory: Path
    manifest: bytes
    signer: Signer

    @property
    def digest(self) -> str:
        return sha256_digest(self.manifest)

    def request(self, chain: ChainName, beacon_round: int, **fields: Any) -> HoldoutRequest:
        """The request that was committed to exactly a day before that beacon was due; `fields` replace its own."""
        at = InstantMs(CHAINS[chain].due_at(beacon_round) - LEAD_MS)
        made = request_of(load_frozen(self.directory).manifest, self.digest, CHAINS[chain], at=at)
        return HoldoutRequest.model_validate_json(json.dumps(made.model_dump(mode="json") | fields))

    def signed(self, request: HoldoutRequest) -> bytes:
        return sign(REQUEST_TYPE, canonical(request), self.signer)


def holdout_round(directory: Path, signer: Signer, holdouts: Sequence[str] = HOLDOUTS) -> HoldoutRound:
    """A small optimizer-matrix to which holdouts were added, in a new directory."""
    scratch = directory.with_name(f"{directory.name}-plain")
    freeze(inputs(protocol="optimizer-matrix"), scratch, signer, SetClock(START), files=LocalFiles())
    manifest = json.loads((scratch / MANIFEST).read_bytes())
    manifest["frozen_at"] = FROZEN_AT
    plain = manifest["tasks"][0]
    manifest["tasks"] += [
        plain | {"id": name, "visibility": "holdout", "task_digest": sha256_digest(name.encode())} for name in holdouts
    ]
    data = dumps(manifest)
    files = {
        MANIFEST: data,
        MANIFEST_ENVELOPE: sign(MANIFEST_TYPE, data, signer),
        KEYS: canonical(KeyRing(keys=(signer.key,))),
    }
    LocalFiles().create_directory(directory, files)
    return HoldoutRound(directory, data, signer)
