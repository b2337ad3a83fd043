"""Rate cards and retail policies as files: read, lint, pin, and build from two public price maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.adapters import prices_genai
from controller.adapters.files_durable import LocalFiles
from controller.adapters.prices_second_map import SecondMap
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import Digest, sha256_digest
from controller.domain.json_files import parse_record
from controller.domain.price_map import Wanted
from controller.domain.rate_card import CARD_BYTES_MAX, RateCard
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical
from controller.meter.card_build import Compared, build_card, left_out
from controller.meter.card_lint import CardExceptions, lint
from controller.ports.named_files import read_named

MODEL: Final = re.compile(r"(?P<provider>[!-.0-~]{1,40})/(?P<model>[!-+\--~]{1,120})")  # printable, without a comma
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
    data = _bytes(path)
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
    return {"card": _write(card, out), "digest": digest_of(card), "rows": len(card.rows)}


def build_rate_card(
    models: Sequence[str],
    out: Path,
    second_map: Path,
    *,
    tiers: Sequence[str],
    speeds: Sequence[str],
    single_sources: Sequence[str],
    on: str | None,
) -> dict[str, Any]:
    """Build a card from genai-prices as the second map confirms it, and write it. Nothing is written otherwise.

    Raises PricesDisagree, InvalidInput.
    """
    day = _day(on)
    second = SecondMap(second_map)
    wanted = [Wanted(*model, tier, speed) for model in _models(models) for tier in tiers for speed in speeds]
    rows = [Compared(row, prices_genai.listing(row, day), second.listing(row)) for row in wanted]
    card = build_card(
        out.stem[:80] or "card",
        rows,
        single_sources=single_sources,
        retrieved_on=day.isoformat(),
        maps=(prices_genai.name(), second.name),
    )
    return {
        "card": _write(card, out),
        "digest": digest_of(card),
        "rows": len(card.rows),
        "single_sources": sorted(single_sources),
        "left_out": list(left_out(rows)),
    }


def _models(texts: Sequence[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for text in texts:
        match = MODEL.fullmatch(text)
        if match is None:
            raise InvalidInput(f"--models: {text[:80]!r} is not of the form provider/model")
        found.append((match["provider"], match["model"]))
    repeated = [pair for pair in found if found.count(pair) > 1]
    if repeated:
        raise InvalidInput(f"--models: {'/'.join(repeated[0])} is named twice")
    return found


def _day(text: str | None) -> date:
    if text is None:
        return datetime.fromtimestamp(SystemClock().now() // 1000, tz=UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"--on: {text[:40]!r} is not a day such as 2026-11-30: {error}") from None


def _read(path: Path, kind: type[R]) -> R:
    return parse_record(_bytes(path), kind, str(path))


def _bytes(path: Path) -> bytes:
    try:
        return read_named(path, bytes_max=CARD_BYTES_MAX)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error


def _write(card: RateCard, out: Path) -> str:
    LocalFiles().create_file(out, canonical(card))
    return str(out)
