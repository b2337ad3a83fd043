"""Usage times rate card, exactly.

Every class is priced by the band that the *whole* prompt of the request falls into; nothing is rounded, and a class,
unit or condition the card does not price is an error: unknown is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.domain.money import NANO_PER_USD, TOKENS_PER_RATE_UNIT, USD_LIMIT
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


@dataclass(frozen=True, slots=True)
class Rate:
    """What prices one request: a row, and the surcharge that the card declares for the place, or 1."""

    row: RateRow
    token_multiplier: Fraction = Fraction(1)


def find_row(card: RateCard, key: RateKey) -> RateRow:
    """The one row of exactly these conditions.

    Raises UnpricedUsage when the card has none, or more than one.
    """
    wanted = (key.provider, key.model, key.tier, key.speed, key.geo)
    rows = [row for row in card.rows if row.conditions == wanted]
    if len(rows) != 1:
        raise UnpricedUsage(f"rate card {card.name!r} has {len(rows)} rows for {key}, where exactly 1 is needed")
    return rows[0]


def find_rate(card: RateCard, key: RateKey) -> Rate:
    """The row of these conditions, or the one row that declares a surcharge for their place.

    Raises UnpricedUsage when the card has neither, or more than one.
    """
    found = [
        Rate(row, Fraction(surcharge.token_multiplier))
        for row in card.rows
        for surcharge in row.surcharges
        if (*row.conditions[:4], surcharge.geo) == (key.provider, key.model, key.tier, key.speed, key.geo)
    ]
    return found[0] if len(found) == 1 else Rate(find_row(card, key))


def rates_of(row: RateRow) -> tuple[Rate, ...]:
    """Every rate that the row declares: its own, and one for each place with a surcharge."""
    return (Rate(row), *(Rate(row, Fraction(surcharge.token_multiplier)) for surcharge in row.surcharges))


def prompt_tokens(usage: Usage) -> int:
    """All tokens of the prompt: plain, read from and written to the cache, audio and images."""
    return sum(count for name, count in usage.tokens.items() if name in PROMPT_CLASSES)


def band_for(row: RateRow, prompt: int) -> RateBand:
    """The dearest-threshold band whose `over` the prompt exceeds; the first band when it exceeds none."""
    exceeded = [band for band in row.bands if prompt > band.over]
    return exceeded[-1] if exceeded else row.bands[0]


def price(usage: Usage, rate: Rate) -> Fraction:
    """The exact cost of one request in USD; a surcharge applies to tokens and leaves counted units alone.

    Raises UnpricedUsage for a class or unit with a non-zero count and no price, for a negative count, and for a cost
    beyond what a record can hold.
    """
    row = rate.row
    band = band_for(row, prompt_tokens(usage))
    nano = Fraction(0)
    for name, count in usage.tokens.items():
        price_of_class = band.nano_usd_per_million.get(name)
        nano += _product(row, f"class {name!r}", count, price_of_class) / TOKENS_PER_RATE_UNIT
    nano *= rate.token_multiplier
    for unit, count in usage.units.items():
        nano += _product(row, f"unit {unit!r}", count, row.nano_usd_per_unit.get(unit))
    usd = nano / NANO_PER_USD
    if usd >= USD_LIMIT:
        raise UnpricedUsage(f"the cost is {USD_LIMIT} USD or more, which no record can hold")
    return usd


def _product(row: RateRow, what: str, count: int, nano: int | None) -> Fraction:
    if count < 0:
        raise UnpricedUsage(f"{what} has the negative count {count}")
    if nano is None and count:
        raise UnpricedUsage(f"rate card row {row.provider}/{row.model} has no price for {what}")
    return Fraction(count * (nano or 0))


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
    return nano * max(rate.token_multiplier for rate in rates_of(row)) / NANO_PER_USD
