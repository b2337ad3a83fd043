"""Step 11: what a release adds to the evidence follows from it, and a measured one was approved by a person."""

from __future__ import annotations

from controller.domain.statement import StatementKind
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.approval import approved_of, check_approval
from controller.evidence.canonical import parse_lines
from controller.evidence.excerpt import AttemptExcerpt, check_excerpts, verdicts
from controller.evidence.exhibits import Exhibits


def check_release(exhibits: Exhibits) -> str:
    """(11) Excerpts, aggregate and sums are of these files; the protocol's gates and the approval hold."""
    files, manifest = exhibits.files, exhibits.manifest
    excerpts = parse_lines(files[bundle.EXCERPTS], AttemptExcerpt, bundle.EXCERPTS)
    check_excerpts(excerpts, verdicts(exhibits.statements), files)
    if exhibits.recompute.aggregate(manifest, files[bundle.DATASET], files[bundle.ANALYSIS]) != files[bundle.AGGREGATE]:
        raise BundleRejected(f"{bundle.AGGREGATE} does not follow from the analysis")
    if bundle.sums(files) != files[bundle.SUMS]:
        raise BundleRejected(f"{bundle.SUMS} does not list the files as they are")
    if manifest.kind == "measured":
        for gate in exhibits.recompute.release_gates(manifest, files[bundle.ANALYSIS]):
            raise BundleRejected(f"the protocol forbids this release: {gate}")
    return f"{len(excerpts)} excerpts, aggregate recomputed; {_approval(exhibits)}"


def _approval(exhibits: Exhibits) -> str:
    envelope = exhibits.files.get(bundle.APPROVAL)
    if envelope is None:
        if exhibits.manifest.kind == "measured":
            raise BundleRejected(f"{bundle.APPROVAL} is missing: no person approved this report")
        return "a rehearsal needs no approval"
    approved = approved_of(exhibits.manifest.round_id, exhibits.files)
    approval = check_approval(envelope, approved, exhibits.manifest, exhibits.keys)
    closed = [each.at for each in exhibits.statements if each.kind is StatementKind.ROUND_CLOSED]
    if not closed or approval.approved_at < closed[-1]:
        raise BundleRejected(f"{bundle.APPROVAL}: given before the round was closed")
    return "approved by a person the manifest names"
