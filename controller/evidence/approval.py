"""A person's approval of one exact release: a signature by a key that the manifest names and the publisher lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from controller.domain.ids import Digest, Slug, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.keys import KeyRing
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.canonical import canonical, parse
from controller.evidence.envelope import APPROVAL_TYPE, check, sign
from controller.ports.signer import Signer

APPROVED: Final = (bundle.MANIFEST, bundle.DATASET, bundle.ANALYSIS, bundle.REPORT)


class Approved(Record):
    """What a person read and approves, by digest. Any other byte in one of the four is another release."""

    round_id: Slug
    manifest_digest: Digest
    dataset_digest: Digest
    analysis_digest: Digest
    report_digest: Digest


class Approval(Record):
    """The signed payload."""

    schema_version: Literal["fairtrial.approval/1"] = "fairtrial.approval/1"
    approved: Approved
    approved_at: InstantMs


def approved_of(round_id: str, files: Mapping[str, bytes]) -> Approved:
    """What an approval of these files names. Raises KeyError when one of the four is missing."""
    manifest, dataset, analysis, report = (sha256_digest(files[name]) for name in APPROVED)
    return Approved(
        round_id=round_id,
        manifest_digest=manifest,
        dataset_digest=dataset,
        analysis_digest=analysis,
        report_digest=report,
    )


def approval_name(approved: Approved) -> str:
    """Where a round keeps the approval of exactly this, so that an approval of anything else is not found."""
    return f"approvals/{sha256_digest(canonical(approved)).removeprefix('sha256:')}.dsse.json"


def sign_approval(approved: Approved, signer: Signer, at: InstantMs) -> bytes:
    """The envelope."""
    return sign(APPROVAL_TYPE, canonical(Approval(approved=approved, approved_at=at)), signer)


def check_approval(envelope: bytes, approved: Approved, manifest: RoundManifest, publishers: KeyRing) -> Approval:
    """The approval, if one of the manifest's approvers gave it to exactly this.

    A key that also publishes is nobody's approval. Raises BadSignature, NotCanonical, or BundleRejected.
    """
    persons = tuple(key for key in manifest.approvers if publishers.find(key.id) is None)
    if not persons:
        raise BundleRejected(f"{bundle.APPROVAL}: the manifest names no approver beside the publisher")
    payload = check(envelope, APPROVAL_TYPE, KeyRing(keys=persons), bundle.APPROVAL)
    found = parse(payload, Approval, bundle.APPROVAL)
    if found.approved != approved:
        raise BundleRejected(f"{bundle.APPROVAL}: it approves another manifest, dataset, analysis or report")
    return found
