"""The frozen rate card, and what a request's usage costs by it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Dict, Iterator, List, Literal, Mapping, Optional, Tuple

from .money import LIMIT, usd_text
from .refusal import Refused
from .shapes import Between, Slug

TokenClass = Literal[
    "in", "read", "w5m", "w1h", "w30m", "w12h", "out", "in_audio", "out_audio", "in_image", "out_image"
]
PROMPT_CLASSES = ("in", "read", "w5m", "w1h", "w30m", "w12h", "in_audio", "in_image")
Price = Annotated[str, re.compile(r"(0|[1-9][0-9]{0,6})(\.[0-9]{1,9})?")]
Name = Annotated[str, re.compile(r"[!-~]{1,120}")]
Day = Annotated[str, re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")]
Multiplier = Annotated[str, re.compile(r"[1-9][0-9]?(\.[0-9]{0,5}[1-9])?")]


@dataclass(frozen=True)
class Usage:
    """Disjoint billable classes of one request in tokens, and counted units."""

    tokens: Dict[TokenClass, int]
    units: Dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Band:
    """Prices of the whole request when its prompt exceeds `over` tokens."""

    over: Annotated[int, Between(0, 10**9)]
    usd_per_million: Dict[TokenClass, Price]


@dataclass(frozen=True)
class Surcharge:
    """A place whose tokens cost this many times as much; units do not."""

    geo: Name
    token_multiplier: Multiplier
    source: str
    retrieved_on: Day


@dataclass(frozen=True)
class Row:
    """Prices of one model under one set of conditions."""

    provider: Name
    model: Name
    source: str
    retrieved_on: Day
    bands: Tuple[Band, ...]
    tier: Name = "standard"
    speed: Name = "standard"
    geo: Name = "global"
    effective_from: Optional[Day] = None
    effective_to: Optional[Day] = None
    usd_per_unit: Dict[Name, Price] = field(default_factory=dict)
    surcharges: Tuple[Surcharge, ...] = ()


@dataclass(frozen=True)
class Card:
    """All rows. No two price the same conditions."""

    name: str
    rows: Tuple[Row, ...]
    schema_version: Literal["fairtrial.rate-card/1"] = "fairtrial.rate-card/1"


@dataclass(frozen=True)
class Lane:
    """One exact model at one provider."""

    id: Slug
    provider: Slug
    model: str
    observed_models: Tuple[str, ...]
    rate_tier: str = "standard"


Conditions = Tuple[str, str, str, str, str]  # provider, model, tier, speed, place


def check_card(card: Card) -> None:
    """Raises Refused unless bands rise from 0 and all conditions differ, those of surcharges included."""
    seen = set()
    for row in card.rows:
        overs = [band.over for band in row.bands]
        if overs[:1] != [0] or overs != sorted(set(overs)):
            raise Refused(f"rate card: the bands of {row.model} do not rise from 0")
        if any(Fraction(each.token_multiplier) <= 1 for each in row.surcharges):
            raise Refused(f"rate card: a surcharge of {row.model} does not make tokens dearer")
        for conditions, _ in _priced(row):
            if conditions in seen:
                raise Refused(f"rate card: {' / '.join(conditions)} is priced twice")
            seen.add(conditions)


def possible_prices(card: Card, lane: Lane, usage: Usage) -> List[str]:
    """What the request may have cost on its lane: speed and place choose among the rows and their surcharges."""
    found = set()
    for row in card.rows:
        if (row.provider, row.model, row.tier) == (lane.provider, lane.model, lane.rate_tier):
            prices = (_price(row, multiplier, usage) for _, multiplier in _priced(row))
            found |= {usd_text(price) for price in prices if price is not None}
    return sorted(found)


def price_under(card: Card, conditions: Conditions, usage: Usage) -> Optional[str]:
    """The price under exactly these conditions; None when the card has none."""
    for row in card.rows:
        for own, multiplier in _priced(row):
            if own == conditions:
                price = _price(row, multiplier, usage)
                return None if price is None else usd_text(price)
    return None


def _priced(row: Row) -> Iterator[Tuple[Conditions, Fraction]]:
    """Every set of conditions that the row prices, with the factor on tokens."""
    for geo, factor in ((row.geo, "1"), *((each.geo, each.token_multiplier) for each in row.surcharges)):
        yield (row.provider, row.model, row.tier, row.speed, geo), Fraction(factor)


def _price(row: Row, multiplier: Fraction, usage: Usage) -> Optional[Fraction]:
    """Exact dollars; None when a class or unit that occurs has no price, or a count is negative."""
    prompt = sum(count for name, count in usage.tokens.items() if name in PROMPT_CLASSES)
    band = [band for band in row.bands if prompt > band.over or band.over == 0][-1]
    tokens, units = _sum(usage.tokens, band.usd_per_million), _sum(usage.units, row.usd_per_unit)
    if tokens is None or units is None:
        return None
    amount = tokens * multiplier / 10**6 + units
    return amount if amount < LIMIT else None


def _sum(counts: Mapping[Any, int], prices: Mapping[Any, str]) -> Optional[Fraction]:
    amount = Fraction(0)
    for name, count in counts.items():
        if count < 0 or (count and name not in prices):
            return None
        amount += count * Fraction(prices.get(name, "0"))
    return amount
