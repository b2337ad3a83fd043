"""The candidate freeze: what a person reviews after the draw, before the matrix is frozen with its holdout."""

from __future__ import annotations

from typing import Literal

from controller.domain.ids import Digest, Slug
from controller.domain.record import Record
from controller.protocols.optimizer_matrix.plan import Selection


class DrawnHoldout(Selection):
    """The publicly selected holdout, with the request that was committed before the randomness was known."""

    request_digest: Digest


class AmendedManifest(Record):
    """The manifest whose holdouts were drawn from."""

    round_id: Slug
    manifest_digest: Digest


class CandidateFreeze(Record):
    """An amendment of the manifest by nothing but the selection. It has no force until a person freezes it."""

    schema_version: Literal["fairtrial.holdout-candidate/1"] = "fairtrial.holdout-candidate/1"
    amends: AmendedManifest
    selection: DrawnHoldout
