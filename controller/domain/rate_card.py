"""A rate card: immutable prices pinned in the manifest by digest, one row per priced condition.

In a file and in evidence a price is a decimal string of US dollars; in memory it is a whole number of nano-dollars.
Every price is written down: none is derived from another one.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from controller.domain.money import NANO_PER_USD, usd_to_text
from controller.domain.record import Record

# Billable classes never overlap; every dialect is normalised into them before anything is priced.
TokenClass = Literal[
    "in", "read", "w5m", "w1h", "w30m", "w12h", "out", "in_audio", "out_audio", "in_image", "out_image"
]
CARD_BYTES_MAX: Final = 8 * 2**20  # ten thousand rows
ROWS_MAX: Final = 10_000
_PRICE: Final = re.compile(r"(0|[1-9][0-9]{0,6})(\.[0-9]{1,9})?")


def nano_usd(text: object) -> int:
    """Nano-dollars of a decimal string of dollars, such as "0.0375".

    Raises ValueError for a number, for another spelling, and for what is no whole number of nano-dollars.
    """
    if not isinstance(text, str):
        raise ValueError('a price is a decimal string such as "1.25", never a number')
    if not _PRICE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a decimal string of dollars with at most nine decimals")
    return int(Fraction(text) * NANO_PER_USD)


def _parsed(value: object, info: ValidationInfo) -> object:
    return nano_usd(value) if info.mode == "json" else value


def _real_day(text: str) -> str:
    date.fromisoformat(text)
    return text


def _above_one(text: str) -> str:
    if Fraction(text) <= 1:
        raise ValueError("a surcharge multiplies by more than 1")
    return text


# Never negative: a class that earned money would hide the cost of another.
Price = Annotated[
    int,
    Field(ge=0, le=2**53 - 1),
    BeforeValidator(_parsed),
    PlainSerializer(lambda nano: usd_to_text(Fraction(nano, NANO_PER_USD)), return_type=str),
]
Name = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,120}$")]  # exact ids, so no spaces and no look-alikes
Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_real_day)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=500)]  # a URL, or what the document is called
Multiplier = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?(\.[0-9]{0,5}[1-9])?$"), AfterValidator(_above_one)]


class RateBand(Record):
    """Prices that hold for the whole request when its prompt exceeds `over` tokens (0 for the first band)."""

    # Files and evidence know prices by their name in dollars only; Python code by the one in nano-dollars.
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    over: int = Field(ge=0, le=10**9)
    nano_usd_per_million: dict[TokenClass, Price] = Field(
        validation_alias="usd_per_million", serialization_alias="usd_per_million"
    )


class Surcharge(Record):
    """A provider's own statement that a place of inference multiplies the price of every token, but not of units."""

    geo: Name
    token_multiplier: Multiplier
    source: Source
    retrieved_on: Day


class RateRow(Record):
    """Prices of one exact model under one tier, speed and place of inference, with where and when they were found."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    provider: Name
    model: Name
    tier: Name = "standard"
    speed: Name = "standard"
    geo: Name = "global"
    source: Source
    retrieved_on: Day
    effective_from: Day | None = None  # first day in force
    effective_to: Day | None = None  # last day in force
    bands: tuple[RateBand, ...] = Field(max_length=20)
    nano_usd_per_unit: dict[Name, Price] = Field(
        default_factory=dict, validation_alias="usd_per_unit", serialization_alias="usd_per_unit"
    )
    surcharges: tuple[Surcharge, ...] = Field(default=(), max_length=50)

    @property
    def conditions(self) -> tuple[str, str, str, str, str]:
        """Provider, model, tier, speed and place: together they name one row of a card."""
        return (self.provider, self.model, self.tier, self.speed, self.geo)

    def in_force(self, day: str) -> bool:
        """Whether the row holds on that day (ISO 8601)."""
        return (self.effective_from or day) <= day <= (self.effective_to or day)

    @field_validator("bands")
    @classmethod
    def _rise(cls, bands: tuple[RateBand, ...]) -> tuple[RateBand, ...]:
        overs = [band.over for band in bands]
        if overs[:1] != [0] or overs != sorted(set(overs)):
            raise ValueError(f"`over` must begin at 0 and rise from band to band; found {overs}")
        return bands

    @field_validator("surcharges")
    @classmethod
    def _differ(cls, surcharges: tuple[Surcharge, ...]) -> tuple[Surcharge, ...]:
        geos = [surcharge.geo for surcharge in surcharges]
        if len(set(geos)) < len(geos):
            raise ValueError(f"each place has one surcharge at most; found {geos}")
        return surcharges

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        if self.effective_from and self.effective_to and self.effective_to < self.effective_from:
            raise ValueError("effective_to lies before effective_from")
        return self


class RateCard(Record):
    """Rows, no two of which price the same conditions, be it by a row of their own or by a surcharge."""

    schema_version: Literal["fairtrial.rate-card/1"] = "fairtrial.rate-card/1"
    name: str = Field(min_length=1, max_length=80)
    rows: tuple[RateRow, ...] = Field(max_length=ROWS_MAX)

    @property
    def retrieved(self) -> str:
        """When the prices were looked up: a day, or the first and the last."""
        days = sorted({row.retrieved_on for row in self.rows})
        return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "never"

    @field_validator("rows")
    @classmethod
    def _price_once(cls, rows: tuple[RateRow, ...]) -> tuple[RateRow, ...]:
        priced = Counter(
            key for row in rows for key in (row.conditions, *((*row.conditions[:4], s.geo) for s in row.surcharges))
        )
        repeated = [key for key, count in priced.items() if count > 1]
        if repeated:
            raise ValueError(f"{' / '.join(repeated[0])} is priced {priced[repeated[0]]} times")
        return rows
