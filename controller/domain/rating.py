"""Usage times rate card, exactly.

Every class is priced by the band that the *whole* prompt of the request falls into; nothing is rounded, and a class,
unit or condition the card does not price is an error: unknown is not zero.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from controller.domain.money import NANO_PER_USD, TOKENS_PER_RATE_UNIT
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.record import Record
from controller.domain.usage import Usage
from controller.errors import UnpricedUsage

# What the model reads. A band is chosen by their sum, cached or not.
PROMPT_CLASSES: Final = frozenset({"in", "read", "w5m", "w1h", "w30m", "w12h", "in_audio", "in_image"})


class RateKey(Record):
    """The conditions under which one request was served; together they name one row of the card."""

    provider: str
    model: str
    tier: str = "standard"
    speed: str = "standard"
    geo: str = "global"

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} (tier {self.tier}, speed {self.speed}, geo {self.geo})"


def find_row(card: RateCard, key: RateKey) -> RateRow:
    """The one row of exactly these conditions.

    Raises UnpricedUsage when the card has none, or more than one.
    """
    rows = [
        row
        for row in card.rows
        if (row.provider, row.model, row.tier, row.speed, row.geo)
        == (key.provider, key.model, key.tier, key.speed, key.geo)
    ]
    if len(rows) != 1:
        raise UnpricedUsage(f"rate card {card.name!r} has {len(rows)} rows for {key}, where exactly 1 is needed")
    return rows[0]


def prompt_tokens(usage: Usage) -> int:
    """All tokens of the prompt: plain, read from and written to the cache, audio and images."""
    return sum(count for name, count in usage.tokens.items() if name in PROMPT_CLASSES)


def band_for(row: RateRow, prompt: int) -> RateBand:
    """The dearest-threshold band whose `over` the prompt exceeds; the first band when it exceeds none."""
    if not row.bands:
        raise UnpricedUsage(f"rate card row {row.provider}/{row.model} has no band")
    ordered = sorted(row.bands, key=lambda band: band.over)
    exceeded = [band for band in ordered if prompt > band.over]
    return exceeded[-1] if exceeded else ordered[0]


def price(usage: Usage, row: RateRow) -> Fraction:
    """The exact cost of one request in USD.

    Raises UnpricedUsage for a class or unit with a non-zero count and no price, and for a negative count.
    """
    band = band_for(row, prompt_tokens(usage))
    nano = Fraction(0)
    for name, count in usage.tokens.items():
        if count < 0:
            raise UnpricedUsage(f"class {name!r} has the negative count {count}")
        rate = band.nano_usd_per_million.get(name)
        if rate is None and count:
            raise UnpricedUsage(f"rate card row {row.provider}/{row.model} has no price for class {name!r}")
        nano += Fraction(count * (rate or 0), TOKENS_PER_RATE_UNIT)
    for unit, count in usage.units.items():
        if count < 0:
            raise UnpricedUsage(f"unit {unit!r} has the negative count {count}")
        rate = row.nano_usd_per_unit.get(unit)
        if rate is None and count:
            raise UnpricedUsage(f"rate card row {row.provider}/{row.model} has no price for unit {unit!r}")
        nano += count * (rate or 0)
    return nano / NANO_PER_USD


def price_ceiling(row: RateRow, *, input_tokens: int, output_tokens: int) -> Fraction:
    """The most that a request of at most these tokens can cost in USD: dearest input class, dearest band it may reach.

    Used to bound what requests in flight may still add, never to settle.
    """
    reachable = [band for band in row.bands if input_tokens > band.over] or list(row.bands)
    dearest_input = max(
        (
            rate
            for band in reachable
            for name, rate in band.nano_usd_per_million.items()
            if name in PROMPT_CLASSES and not name.endswith(("_audio", "_image"))
        ),
        default=0,
    )
    dearest_output = max((band.nano_usd_per_million.get("out", 0) for band in reachable), default=0)
    nano = Fraction(input_tokens * dearest_input + output_tokens * dearest_output, TOKENS_PER_RATE_UNIT)
    return nano / NANO_PER_USD
