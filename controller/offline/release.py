"""Step 11: what a release adds to the evidence follows from it, and a measured one was approved by a person."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, List, Literal, Optional, Tuple

from . import claims as said
from . import files as names
from .canonical import loads
from .files import Files, patch_name
from .ledger import read_records
from .log import Statement
from .merkle import sha256_digest
from .plan import Plan
from .refusal import Refused
from .shapes import Digest, Slug, Whole, read
from .signatures import APPROVAL_TYPE, KeyRing, payload_of

Extent = Optional[Tuple[int, str]]  # size and digest of a whole text


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a redacted text; size and digest are those of the whole one."""

    text: Annotated[str, re.compile(r"[\n\t -~]{0,4096}")]
    is_truncated: bool
    redactions: Whole
    whole_bytes: Whole
    whole_digest: Digest


@dataclass(frozen=True)
class AttemptExcerpt:
    """What one verification left for readers."""

    attempt_id: str
    exit_code: Optional[int]
    changed: Excerpt
    verifier_output: Optional[Excerpt]
    patch: Optional[Excerpt]


@dataclass(frozen=True)
class Approved:
    """What a person approved, by digest."""

    round_id: Slug
    manifest_digest: Digest
    dataset_digest: Digest
    analysis_digest: Digest
    report_digest: Digest


@dataclass(frozen=True)
class Approval:
    """The signed payload."""

    approved: Approved
    approved_at: int
    schema_version: Literal["fairtrial.approval/1"] = "fairtrial.approval/1"


def check_excerpts(files: Files, log: List[Statement]) -> int:
    """One excerpt for each verdict, in the order of the log, of the very things that were judged; how many."""
    excerpts = read_records(AttemptExcerpt, files[names.EXCERPTS], names.EXCERPTS)
    judged = {each.subject: each.claim.verdict for each in log if isinstance(each.claim, said.VerdictReached)}
    if [one.attempt_id for one in excerpts] != list(judged):
        raise Refused("excerpts: not one for each verdict, in the order of the log")
    for one, verdict in zip(excerpts, judged.values()):
        output = verdict.output
        changed = "".join(f"{path}\n" for path in verdict.changed_paths).encode("utf-8", "surrogatepass")
        patch = files.get(patch_name(one.attempt_id))
        expected = (
            None if output is None else output.exit_code,
            _whole(changed),
            None if output is None else (output.report_bytes, output.report_digest),
            _whole(patch),
        )
        if (one.exit_code, _of(one.changed), _of(one.verifier_output), _of(one.patch)) != expected:
            raise Refused(f"excerpts: {one.attempt_id} is of something else than was judged")
    return len(excerpts)


def _whole(data: Optional[bytes]) -> Extent:
    return None if data is None else (len(data), sha256_digest(data))


def _of(excerpt: Optional[Excerpt]) -> Extent:
    return None if excerpt is None else (excerpt.whole_bytes, excerpt.whole_digest)


def check_sums(files: Files) -> None:
    """SHA256SUMS lists every other file but the index."""
    listed = sorted(files.keys() - {names.SUMS, names.INDEX}, key=str.encode)
    found = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in listed)
    if files[names.SUMS] != found.encode():
        raise Refused(f"{names.SUMS} does not list the files as they are")


def check_approval(plan: Plan, files: Files, publishers: KeyRing, log: List[Statement]) -> str:
    """A person whom the manifest names, and who is not the publisher, approved exactly this, after the close."""
    if names.APPROVAL not in files:
        if plan.kind == "measured":
            raise Refused(f"{names.APPROVAL} is missing: no person approved this report")
        return "a rehearsal needs no approval"
    own = {key.id for key in publishers.keys}
    persons = tuple(key for key in plan.approvers if key.id not in own)
    payload = payload_of(files[names.APPROVAL], APPROVAL_TYPE, KeyRing(persons), names.APPROVAL)
    approval = read(Approval, loads(payload, names.APPROVAL), names.APPROVAL)
    digests = (sha256_digest(files[name]) for name in (names.MANIFEST, names.DATASET, names.ANALYSIS, names.REPORT))
    if approval.approved != Approved(plan.round_id, *digests):
        raise Refused(f"{names.APPROVAL}: it approves another manifest, dataset, analysis or report")
    closings = [statement.at for statement in log if isinstance(statement.claim, said.RoundClosed)]
    if not closings or approval.approved_at < closings[-1]:
        raise Refused(f"{names.APPROVAL}: given before the round was closed")
    return "approved by a person the manifest names"
