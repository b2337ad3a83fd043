"""Steps 1 to 4: the files, the plan and the log are the ones that were signed."""

from __future__ import annotations

from typing import Final

from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.canonical import canonical, parse
from controller.evidence.claims import check_claims, claim
from controller.evidence.corpus import corpus_root
from controller.evidence.envelope import MANIFEST_TYPE, check
from controller.evidence.exhibits import Exhibits
from controller.evidence.log import check_chain
from controller.evidence.steps_log import check_log


def check_index(exhibits: Exhibits) -> str:
    """(1) The signed list and the files are the same."""
    index = exhibits.index
    parse(exhibits.files[bundle.KEYS], KeyRing, bundle.KEYS)
    total = sum(entry.bytes for entry in index.files)
    return f"{len(index.files)} files, {total} bytes, version {index.version}"


def check_manifest(exhibits: Exhibits) -> str:
    """(2) The manifest is the signed one, and the index is about it."""
    payload = check(exhibits.files[bundle.MANIFEST_ENVELOPE], MANIFEST_TYPE, exhibits.keys, bundle.MANIFEST_ENVELOPE)
    if payload != exhibits.files[bundle.MANIFEST]:
        raise BundleRejected(f"{bundle.MANIFEST} is not what was signed")
    if exhibits.index.manifest_digest != exhibits.manifest_digest:
        raise BundleRejected("the index is about another manifest")
    if exhibits.index.round_id != exhibits.manifest.round_id:
        raise BundleRejected(f"the index is about round {exhibits.index.round_id!r}")
    return f"round {exhibits.manifest.round_id}, {exhibits.manifest_digest}"


def check_commitments(exhibits: Exhibits) -> str:
    """(3) Corpus root and the digests of prices, terms and network policy follow from what they commit to."""
    manifest = exhibits.manifest
    root = corpus_root(manifest.tasks)
    if manifest.corpus_root != root:
        raise BundleRejected(f"corpus root is {manifest.corpus_root}, but the tasks give {root}")
    card = sha256_digest(canonical(manifest.rate_card))
    retail = manifest.retail_policy
    for name, said, found in (
        ("rate card", manifest.rate_card_digest, card),
        ("retail policy", manifest.retail_policy_digest, sha256_digest(canonical(retail)) if retail else None),
        ("network policy", manifest.network_policy_digest, sha256_digest(manifest.network_policy.encode())),
    ):
        if said != found:
            raise BundleRejected(f"{name} digest is {said}, but the {name} gives {found}")
    return f"{len(manifest.tasks)} tasks under {root}; rate card {manifest.rate_card.name!r}"


_ABOUT_ROUND: Final = frozenset(
    {
        StatementKind.ROUND_FROZEN, StatementKind.ROUND_AUTHORIZED, StatementKind.ROUND_STARTED,
        StatementKind.ROUND_STOPPED, StatementKind.ROUND_SETTLED, StatementKind.ROUND_CLOSED,
    }
)  # fmt: skip


def check_statements(exhibits: Exhibits) -> str:
    """(4) The log is complete, in order, typed, signed in time, and about this manifest."""
    statements = exhibits.statements
    check_chain(statements, exhibits.statement_lines)
    check_claims(statements)
    _check_round_statements(exhibits)
    signed = check_log(exhibits)
    return f"{len(statements)} statements under sha256:{exhibits.checkpoint.root.hex()}, {signed}"


def _check_round_statements(exhibits: Exhibits) -> None:
    """The freezing comes first and once; every statement about the round as a whole names this manifest."""
    named = [s for s in exhibits.statements if _manifest_named(s) is not None]
    frozen = [s.sequence for s in named if s.kind is StatementKind.ROUND_FROZEN]
    if frozen != [0]:
        raise BundleRejected("the log does not begin by freezing its manifest, once")
    for statement in named:
        if _manifest_named(statement) != exhibits.manifest_digest:
            raise BundleRejected(f"statement {statement.sequence} is about another manifest")
    if claim(named[0], bodies.RoundFrozen).corpus_root != exhibits.manifest.corpus_root:
        raise BundleRejected("statement 0 freezes another corpus root than the manifest's")
    for statement in exhibits.statements:
        if statement.kind in _ABOUT_ROUND and statement.subject != exhibits.manifest.round_id:
            raise BundleRejected(f"statement {statement.sequence} is about round {statement.subject!r}")
    starts = [claim(s, bodies.RoundStarted) for s in named if s.kind is StatementKind.ROUND_STARTED]
    if not starts:
        raise BundleRejected("the log never says that the round was started")
    for start in starts:
        if start.authorization_digest not in exhibits.grants_by_digest:
            raise BundleRejected(f"epoch {start.epoch} started under a grant that is not in the bundle")


def _manifest_named(statement: Statement) -> str | None:
    match statement.kind:
        case StatementKind.ROUND_FROZEN:
            return claim(statement, bodies.RoundFrozen).manifest_digest
        case StatementKind.ROUND_AUTHORIZED:
            return claim(statement, bodies.RoundAuthorized).manifest_digest
        case StatementKind.ROUND_STARTED:
            return claim(statement, bodies.RoundStarted).manifest_digest
        case _:
            return None
