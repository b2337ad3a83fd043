"""A rate card built from two public price maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from controller.adapters import prices_genai
from controller.adapters.prices_second_map import SecondMap
from controller.adapters.system_clock import SystemClock
from controller.domain.price_map import Wanted
from controller.errors import InvalidInput
from controller.meter.card_build import Compared, build_card, left_out
from controller.wiring.cards import digest_of, write_card

MODEL: Final = re.compile(r"(?P<provider>[!-.0-~]{1,40})/(?P<model>[!-+\--~]{1,120})")  # printable, without a comma


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
        "card": write_card(card, out),
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
