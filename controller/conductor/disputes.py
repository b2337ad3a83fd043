"""Disputes: what somebody contests about a round, kept for as long as the round is."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from controller.domain.bodies import DISPUTE_BYTES_MAX, DisputeFiled
from controller.domain.ids import sha256_digest
from controller.domain.plan import RoundManifest
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput
from controller.evidence.bundle import dispute_name
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.journal import Journal

ROUND = "round"  # how a person names the round as a whole


def file_dispute(
    round_dir: Path,
    manifest: RoundManifest,
    journal: Journal,
    clock: Clock,
    files: DurableFiles,
    *,
    about: str,
    by: str,
    text: bytes,
) -> DisputeFiled:
    """Keep the text, and put the dispute into the log, before or after the round's closing. May be repeated.

    Raises InvalidInput for a subject that the round does not have, for a name that is no line of text, and for a text
    that is empty or too long.
    """
    subject = manifest.round_id if about == ROUND else about
    attempts = {s.subject for s in journal.statements() if s.kind is StatementKind.ATTEMPT_INTENDED}
    if subject not in {manifest.round_id, *attempts, *(run.id for run in manifest.schedule)}:
        raise InvalidInput(
            f"round {manifest.round_id} has no logical run or attempt {about!r}",
            remedy="Name `round`, a logical run as `fairtrial status ROUND` does, or an attempt's id.",
        )
    if not 0 < len(text) <= DISPUTE_BYTES_MAX:
        raise InvalidInput(f"the text has {len(text)} bytes; 1 to {DISPUTE_BYTES_MAX} are taken")
    try:
        body = DisputeFiled(by=by, text_digest=sha256_digest(text))
    except ValidationError as error:
        raise InvalidInput("by: one line of 1 to 200 characters is needed") from error
    # The text first: a log that names a text nobody has could never be published again.
    files.create_file(round_dir / dispute_name(body.text_digest), text)
    key = f"{StatementKind.DISPUTE_FILED}:{subject}:{body.text_digest}:{by}"
    journal.append(StatementKind.DISPUTE_FILED, subject, body, at=clock.now(), key=key)
    return body
