"""Make the excerpts of a release. Pure.

What a hostile stage wrote (the patch, its paths) is redacted before it is cut; the verifier's output is told in fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from controller.domain.ids import sha256_digest
from controller.domain.outcome import Verdict
from controller.domain.statement import Statement
from controller.evidence.bundle import patch_name
from controller.evidence.excerpt import EXCERPT_BYTES_MAX, AttemptExcerpt, Excerpt, changed_text, verdicts
from controller.publish.redact import Known, redact, to_redact
from controller.publish.rewrite import Names, printable, rewrite
from controller.publish.rules import Private

WINDOW_CHARS: Final = (
    2**18
)  # of a large text; an excerpt shows far less, and what crosses the edge is taken out as well


def excerpts_of(
    statements: Sequence[Statement], files: Mapping[str, bytes], private: Private
) -> tuple[AttemptExcerpt, ...]:
    """One excerpt for each verdict, in the order of the log. `files` holds the patches by their names in the bundle."""
    return tuple(
        _attempt(attempt_id, verdict, files.get(patch_name(attempt_id)), private)
        for attempt_id, verdict in verdicts(statements).items()
    )


def _attempt(attempt_id: str, verdict: Verdict, patch: bytes | None, private: Private) -> AttemptExcerpt:
    known = to_redact(private.of_attempt(attempt_id))

    def excerpt(text: str, whole_bytes: int, whole_digest: str) -> Excerpt:
        return make_excerpt(text, known, private.names, whole_bytes=whole_bytes, whole_digest=whole_digest)

    output, changed = verdict.output, changed_text(verdict)
    return AttemptExcerpt(
        attempt_id=attempt_id,
        exit_code=output.exit_code if output else None,
        changed=excerpt(changed, len(changed.encode()), sha256_digest(changed.encode())),
        verifier_output=excerpt(verifier_text(verdict), output.report_bytes, output.report_digest) if output else None,
        patch=patch if patch is None else excerpt(patch.decode(errors="replace"), len(patch), sha256_digest(patch)),
    )


def verifier_text(verdict: Verdict) -> str:
    """Gates, counts and cases by the names of the frozen list: nothing the code under test printed is in it."""
    lines = [f"{gate.name}: {'passed' if gate.passed else 'failed'}: {gate.detail}" for gate in verdict.gates]
    if verdict.output:
        lines.append(f"cases passed: {verdict.output.passed} of {verdict.output.cases}")
        lines += [f"case {name}: failed" for name in verdict.output.failed]
    return "".join(f"{line}\n" for line in lines)


def make_excerpt(text: str, known: Known, names: Names, *, whole_bytes: int, whole_digest: str) -> Excerpt:
    """Known values first, then places and names, then what a terminal would obey, and only then the cut."""
    without, redactions = redact(text[:WINDOW_CHARS], known)
    shown = printable(rewrite(without, names))
    return Excerpt(
        text=shown[:EXCERPT_BYTES_MAX],
        is_truncated=len(shown) > EXCERPT_BYTES_MAX or len(text) > WINDOW_CHARS,
        redactions=redactions,
        whole_bytes=whole_bytes,
        whole_digest=whole_digest,
    )
