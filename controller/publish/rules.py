"""What still forbids a release. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from controller.domain import bodies
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim
from controller.evidence.steps_results import REHEARSAL_MARK
from controller.publish.patterns import credentials
from controller.publish.redact import LETTERS_MIN, blocks, to_scan
from controller.publish.rewrite import Names


@dataclass(frozen=True)
class AttemptSecrets:
    """What the controller put into one attempt and nobody may publish."""

    tokens: tuple[bytes, ...] = ()
    canaries: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Private:
    """Values that must not leave: the round's secrets, those of each attempt by its id, and this machine's names."""

    secrets: tuple[bytes, ...] = ()
    attempts: Mapping[str, AttemptSecrets] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    names: Names = field(default_factory=Names)

    def of_attempt(self, attempt_id: str) -> tuple[bytes, ...]:
        """Every value that one attempt could have seen or guessed."""
        own = self.attempts.get(attempt_id, AttemptSecrets())
        return (*self.secrets, *own.tokens, *own.canaries)


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


def leaks(files: Mapping[str, bytes], private: Private) -> Iterator[str]:
    """Every file that seems to hold a credential, holds a private value however spelled, or names this machine.

    The finding names file and kind, never the value.
    """
    attempts = private.attempts.values()
    kinds = {
        "a known secret": (*private.secrets, *(value for one in attempts for value in one.tokens)),
        "a canary of an attempt": tuple(value for one in attempts for value in one.canaries),
    }
    known = {kind: to_scan(values) for kind, values in kinds.items()}
    anything = to_scan(value for values in kinds.values() for value in values)
    binary = [value for value in private.secrets if not value.isascii() and len(value) >= LETTERS_MIN]
    places = {
        "names a path of this machine": [_whole_path(path) for path in private.paths if path.rstrip("/")],
        "names this machine or its user": [
            _whole_word(name) for name in (*private.names.hosts, *private.names.users) if len(name) >= LETTERS_MIN
        ],
    }
    for name, data in files.items():
        for kind in credentials(data):
            yield f"{name} holds {kind}"
        found = {
            kind
            for block in blocks(data.decode(errors="replace"))
            if anything.is_in(block)
            for kind, values in known.items()
            if values.is_in(block)
        }
        if any(value in data for value in binary):
            found.add("a known secret")
        yield from (f"{name} holds {kind}" for kind in sorted(found))
        for kind, patterns in places.items():
            if any(pattern.search(data) for pattern in patterns):
                yield f"{name} {kind}"


def _whole_path(path: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w./-])" + re.escape(path.rstrip("/").encode()) + rb"(?![\w.-])")


def _whole_word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w-])" + re.escape(name.encode()) + rb"(?![\w-])")
