"""What still forbids a release. Pure."""

from __future__ import annotations

import base64
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.domain import bodies
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim
from controller.evidence.steps_results import REHEARSAL_MARK

_SECRET_BYTES_MIN: Final = 8  # a shorter "secret" would be found by chance in every file
_PATTERNS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "a run-scoped token": re.compile(rb"\b(?:rt|up)_[0-9a-f]{64}"),
    "a bearer credential": re.compile(rb"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{20,}"),
    "a private key": re.compile(rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
    "a provider key": re.compile(rb"\bsk-[A-Za-z0-9_-]{20,}"),
}


def open_gates(
    manifest: RoundManifest,
    statements: Sequence[Statement],
    *,
    dataset: bytes | None,
    analysis: bytes | None,
    report: str,
    is_signed: bool,
) -> Iterator[str]:
    """Every gate that is still open, as `gate: what is missing`; nothing when the round may be released."""
    kinds = {statement.kind for statement in statements}
    if StatementKind.ROUND_CLOSED not in kinds:
        scored = {s.subject for s in statements if s.kind is StatementKind.RUN_SCORED}
        yield f"closed: {len(scored)} of {len(manifest.schedule)} logical runs have a score"
    if StatementKind.ROUND_SETTLED not in kinds:
        yield "settled: the round's books are open"
    if not is_signed:
        yield f"signed: no checkpoint signs the {len(statements)} statements of the log"
    if dataset is None or analysis is None:
        yield "analysed: dataset.jsonl or analysis.json is missing"
    if manifest.kind == "rehearsal" and REHEARSAL_MARK not in report.lower():
        yield "marked: the report does not say that this is a rehearsal"
    if manifest.kind == "measured":
        starts = [claim(s, bodies.RoundStarted) for s in statements if s.kind is StatementKind.ROUND_STARTED]
        weak = sorted({start.isolation for start in starts} - {"vm"})
        if weak:
            yield f"isolated: a measured round ran in {', '.join(weak)} isolation"


def leaks(files: Mapping[str, bytes], *, secrets: Sequence[bytes], private_paths: Sequence[str]) -> Iterator[str]:
    """Every file that holds a secret-like text, a known secret in a common spelling, or a path of this machine.

    The finding names file and kind, never the secret.
    """
    needles = {needle for secret in secrets if len(secret) >= _SECRET_BYTES_MIN for needle in spellings(secret)}
    paths = [
        re.compile(rb"(?<![\w./-])" + re.escape(path.rstrip("/").encode()) + rb"(?![\w.-])")
        for path in private_paths
        if path.rstrip("/")
    ]
    for name, data in files.items():
        for kind, pattern in _PATTERNS.items():
            if pattern.search(data):
                yield f"{name} holds {kind}"
        if any(needle in data for needle in needles):
            yield f"{name} holds a known secret"
        if any(pattern.search(data) for pattern in paths):
            yield f"{name} names a path of this machine"


def spellings(secret: bytes) -> Iterator[bytes]:
    """The secret as it is, in hex, percent-encoded, and in base64 at each of its three alignments."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield urllib.parse.quote_from_bytes(secret, safe="").encode()
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + secret)
        inner = text[4 if shift else 0 : len(text) // 4 * 4 - 4]  # without the groups that depend on the neighbours
        if len(inner) >= _SECRET_BYTES_MIN:
            yield inner
            yield inner.replace(b"+", b"-").replace(b"/", b"_")
