"""A rate card: immutable prices pinned in the manifest by digest, one row per priced condition."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.domain.record import Record

# Billable classes never overlap; every dialect is normalised into them before anything is priced.
TokenClass = Literal[
    "in", "read", "w5m", "w1h", "w30m", "w12h", "out", "in_audio", "out_audio", "in_image", "out_image"
]
# Never negative: a class that earned money would hide the cost of another.
Price = Annotated[int, Field(ge=0, le=2**53 - 1)]


class RateBand(Record):
    """Prices that hold for the whole request when its prompt exceeds `over` tokens (0 for the first band)."""

    over: int = Field(ge=0)
    nano_usd_per_million: dict[TokenClass, Price]


class RateRow(Record):
    """Prices of one exact model under one tier, speed and place of inference."""

    provider: str
    model: str
    tier: str = "standard"
    speed: str = "standard"
    geo: str = "global"
    bands: tuple[RateBand, ...] = Field(min_length=1)
    nano_usd_per_unit: dict[str, Price] = Field(default_factory=dict)


class RateCard(Record):
    schema_version: Literal["fairtrial.rate-card/1"] = "fairtrial.rate-card/1"
    name: str
    source: str
    retrieved_on: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    rows: tuple[RateRow, ...]
