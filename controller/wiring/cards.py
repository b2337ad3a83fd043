"""Rate cards and retail policies as files: read, lint, pin and write."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from controller.adapters.files_durable import LocalFiles
from controller.domain.ids import Digest, sha256_digest
from controller.domain.json_files import parse_record
from controller.domain.rate_card import CARD_BYTES_MAX, RateCard
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy
from controller.evidence.canonical import canonical
from controller.meter.card_lint import CardExceptions, lint
from controller.wiring.inputs import read_input

R = TypeVar("R", bound=Record)


def read_card(path: Path) -> RateCard:
    """The card in that file, in any strict spelling. Raises InvalidInput with the path of each wrong field."""
    return _read(path, RateCard)


def read_retail(path: Path) -> RetailPolicy:
    """The policy in that file. Raises InvalidInput with the path of each wrong field."""
    return _read(path, RetailPolicy)


def digest_of(record: Record) -> Digest:
    """What names a card or a policy: the digest of its canonical bytes."""
    return sha256_digest(canonical(record))


def lint_card(path: Path, exceptions: Path | None) -> dict[str, Any]:
    """`{"digest", "rows", "is_canonical", "findings", "exceptions_used", "exceptions_unused"}`."""
    data = read_input(path, bytes_max=CARD_BYTES_MAX)
    card = parse_record(data, RateCard, str(path))
    known = _read(exceptions, CardExceptions) if exceptions else CardExceptions(exceptions=())
    report = lint(card, known)
    return {
        "digest": digest_of(card),
        "rows": len(card.rows),
        "is_canonical": canonical(card) == data,
        "findings": [str(finding) for finding in report.findings],
        "exceptions_used": list(report.used),
        "exceptions_unused": list(report.unused),
    }


def pin_card(draft: Path, out: Path) -> dict[str, Any]:
    """Write the draft's canonical bytes, so that a file's SHA-256 is the digest that manifests pin."""
    card = read_card(draft)
    return {"card": write_card(card, out), "digest": digest_of(card), "rows": len(card.rows)}


def write_card(card: RateCard, out: Path) -> str:
    """Write it in canonical form; its path. An existing file is never touched."""
    LocalFiles().create_file(out, canonical(card))
    return str(out)


def _read(path: Path, kind: type[R]) -> R:
    return parse_record(read_input(path, bytes_max=CARD_BYTES_MAX), kind, str(path))
