"""What a public price map says of one model, in a form in which two maps can be compared price by price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

CALL: Final = "call:"  # before a unit's name: a price per call, not per million tokens
# The class of cache writes that maps price without naming a lifetime: the provider's shortest.
SHORT_WRITES: Final[Mapping[str, str]] = {"anthropic": "w5m", "openai": "w30m"}
GEO: Final = "geo:"  # before a place: a multiplier of every token's price, not a price


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """One row that is asked for: an exact model under one tier and speed, anywhere."""

    provider: str
    model: str
    tier: str = "standard"
    speed: str = "standard"


@dataclass(frozen=True, slots=True, order=True)
class PricePoint:
    """One price: of a token class, of a call (`call:web_search`) or the multiplier of a place (`geo:us`).

    `over` is the threshold of its band, 0 for the first.
    """

    wanted: Wanted
    over: int
    name: str

    def __str__(self) -> str:
        row = self.wanted
        band = f":{self.over}" if self.over else ""
        return f"{row.provider}/{row.model}:{row.tier}:{row.speed}:{self.name}{band}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One map's prices of one wanted row: USD per million tokens, USD per call, or multipliers. Empty when it has none.

    `left_out` names prices that the map has and a card has no class for.
    """

    prices: Mapping[PricePoint, Fraction]
    source: str
    left_out: tuple[str, ...] = ()
    effective_from: str | None = None
    effective_to: str | None = None
