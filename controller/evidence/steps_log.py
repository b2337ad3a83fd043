"""Part of step 4: the log was signed when it had to be, others may vouch for it, and every dispute is in the bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.instant import instant_text
from controller.domain.statement import StatementKind
from controller.errors import BadSignature, BundleRejected
from controller.evidence import bundle
from controller.evidence.claims import claim
from controller.evidence.exhibits import Exhibits
from controller.evidence.log import check_continues
from controller.evidence.witness import Witness, check_cosigned, publishers_note


def check_log(exhibits: Exhibits) -> str:
    """Every signed state is the beginning of this log, the last one is all of it; what to say of it."""
    size = len(exhibits.statement_lines)
    if exhibits.checkpoint.size != size:
        raise BundleRejected(f"the checkpoint signs {exhibits.checkpoint.size} statements, but the log has {size}")
    signed = exhibits.signed_states
    check_continues(exhibits.statement_lines, [*signed.values(), exhibits.checkpoint])
    _check_signed_in_time(exhibits, sorted(signed))
    disputes = _check_disputes(exhibits)
    others = [*_check_witnesses(exhibits), *_check_stamps(exhibits)]
    filed = f", {disputes} disputes" if disputes else ""
    return "; ".join([f"signed in {len(signed)} states{filed}", *others])


def _check_signed_in_time(exhibits: Exhibits, sizes: Sequence[int]) -> None:
    """At freeze, between each start and its first intent, and after the closing."""
    if 1 not in sizes:
        raise BundleRejected("the log was not signed at freeze")
    start: int | None = None  # the last one that nothing was intended under
    for statement in exhibits.statements:
        if statement.kind is StatementKind.ROUND_STARTED:
            start = statement.sequence
        elif statement.kind is StatementKind.ATTEMPT_INTENDED and start is not None:
            if not any(start < size <= statement.sequence for size in sizes):
                raise BundleRejected(f"the log was not signed between the start in statement {start} and an attempt")
            start = None
        elif statement.kind is StatementKind.ROUND_CLOSED and sizes[-1] <= statement.sequence:
            raise BundleRejected("the log was not signed after the round was closed")


def _check_disputes(exhibits: Exhibits) -> int:
    """Every dispute is about something of this round and has its text, and every text its dispute."""
    attempts = (s.subject for s in exhibits.statements if s.kind is StatementKind.ATTEMPT_INTENDED)
    known = {exhibits.manifest.round_id, *exhibits.scheduled, *attempts}
    texts = set()
    filed = [s for s in exhibits.statements if s.kind is StatementKind.DISPUTE_FILED]
    for statement in filed:
        digest = claim(statement, bodies.DisputeFiled).text_digest
        name = bundle.dispute_name(digest)
        texts.add(name)
        if statement.subject not in known:
            raise BundleRejected(f"statement {statement.sequence} disputes {statement.subject!r}, which is not here")
        if sha256_digest(exhibits.files.get(name, b"")) != digest:
            raise BundleRejected(f"{name}, the text of a dispute, is missing or has other bytes")
    for name in sorted(exhibits.files):
        if name.startswith("disputes/") and name not in texts:
            raise BundleRejected(f"{name} belongs to no dispute")
    return len(filed)


def _check_witnesses(exhibits: Exhibits) -> list[str]:
    """Every cosigned state is one that is here; the witnesses who were asked for have seen the round's end."""
    cosigned = {name: size for name in exhibits.files if (size := bundle.cosigned_size(name)) is not None}
    for name, size in sorted(cosigned.items()):
        if publishers_note(exhibits.files[name]) != exhibits.files.get(bundle.checkpoint_name(size)):
            raise BundleRejected(f"{name} is not the signed state of that size with one more line")
    return [_check_witness(exhibits, witness, cosigned) for witness in exhibits.outsiders.witnesses]


def _check_witness(exhibits: Exhibits, witness: Witness, cosigned: Mapping[str, int]) -> str:
    if exhibits.keys.find(witness.key.id) is not None:
        raise BundleRejected(f"the witness {witness.name} has the publisher's own key")
    for name, size in sorted(cosigned.items()):
        at = check_cosigned(exhibits.files[name], witness, name)
        if at is not None and size > exhibits.closed_at:
            return f"{witness.name} saw {size} statements at {instant_text(at)}"
    raise BundleRejected(f"the witness {witness.name} has not signed the log up to the closing of the round")


def _check_stamps(exhibits: Exhibits) -> list[str]:
    """Every timestamp has its signed state; the authority that was asked for has stamped the round's end."""
    stamps = {size: name for name in exhibits.files if (size := bundle.stamp_size(name)) is not None}
    for size, name in sorted(stamps.items()):
        if bundle.checkpoint_name(size) not in exhibits.files:
            raise BundleRejected(f"{name} stamps a state of the log that is not here")
    authority = exhibits.outsiders.authority
    if authority is None:
        return []
    fault = ""
    for size, name in sorted(stamps.items()):
        if size <= exhibits.closed_at:
            continue
        try:
            at = authority.time_of(exhibits.files[name], exhibits.files[bundle.checkpoint_name(size)])
            return [f"{size} statements existed at {instant_text(at)}, says the time authority"]
        except BadSignature as error:  # another authority's, perhaps; the pinned one may have stamped a later state
            fault = f" ({error})"
    raise BundleRejected(f"no timestamp of the pinned authority covers the closing of the round{fault}")
