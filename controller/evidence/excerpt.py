"""Excerpts of what was judged: short, redacted, and bound to the whole by its digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import Field

from controller.domain import bodies
from controller.domain.ids import Digest, sha256_digest
from controller.domain.outcome import Verdict
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected
from controller.evidence.bundle import patch_name
from controller.evidence.claims import claim

EXCERPT_BYTES_MAX: Final = 4096
_PRINTABLE: Final = r"^[\n\t -~]*$"


class Excerpt(Record):
    """The beginning of a redacted text, in printable ASCII. Size and digest are those of the whole, unredacted."""

    text: str = Field(max_length=EXCERPT_BYTES_MAX, pattern=_PRINTABLE)
    is_truncated: bool
    redactions: int = Field(ge=0)  # stretches that spelled a value the controller knows to be secret
    whole_bytes: int = Field(ge=0)
    whole_digest: Digest


class AttemptExcerpt(Record):
    """What one verification left for readers."""

    attempt_id: str
    exit_code: int | None  # of the code under test; null when it was killed or never ran
    changed: Excerpt  # the changed paths, one on a line
    verifier_output: Excerpt | None  # null: nothing was run
    patch: Excerpt | None  # null: there was no tree to compare


def verdicts(statements: Sequence[Statement]) -> dict[str, Verdict]:
    """Every verdict by its attempt, in the order of the log."""
    judged = (statement for statement in statements if statement.kind is StatementKind.VERDICT)
    return {statement.subject: claim(statement, bodies.VerdictReached).verdict for statement in judged}


def changed_text(verdict: Verdict) -> str:
    """The changed paths as the text that an excerpt shows."""
    return "".join(f"{path}\n" for path in verdict.changed_paths)


def check_excerpts(
    excerpts: Sequence[AttemptExcerpt], judged: Mapping[str, Verdict], files: Mapping[str, bytes]
) -> None:
    """Raises BundleRejected unless there is one excerpt for each verdict, in order, of the very things it is about."""
    if [one.attempt_id for one in excerpts] != list(judged):
        raise BundleRejected("excerpts: not one for each verdict, in the order of the log")
    for one, verdict in zip(excerpts, judged.values(), strict=True):
        where = f"excerpts: {one.attempt_id}"
        output = verdict.output
        if one.exit_code != (output.exit_code if output else None):
            raise BundleRejected(f"{where}: the exit code is not the verdict's")
        changed = changed_text(verdict).encode()
        _check_whole(one.changed, (len(changed), sha256_digest(changed)), f"{where}: changed paths")
        report = (output.report_bytes, output.report_digest) if output else None
        _check_whole(one.verifier_output, report, f"{where}: verifier output")
        patch = files.get(patch_name(one.attempt_id))
        _check_whole(one.patch, None if patch is None else (len(patch), sha256_digest(patch)), f"{where}: patch")


def _check_whole(excerpt: Excerpt | None, whole: tuple[int, str] | None, where: str) -> None:
    found = None if excerpt is None else (excerpt.whole_bytes, excerpt.whole_digest)
    if found != whole:
        raise BundleRejected(f"{where}: the excerpt is of something else")
