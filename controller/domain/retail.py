"""What a customer would be charged for the same requests: a simulation beside the exact cost, never instead of it.

The policy is a file of its own with a digest of its own. It is the only place where money is rounded, other than at
display.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from controller.domain.money import USD_LIMIT
from controller.domain.record import Record
from controller.errors import UnpricedUsage

# Twelve decimals are finer than any tariff; the bounds keep the result within what a `UsdText` can hold.
StepText = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,5})(\.[0-9]{0,11}[1-9])?$")]
Rounding = Literal["half_up", "half_even", "ceiling", "floor"]


class RetailPolicy(Record):
    """How exact costs become a retail figure: mark up by so many percent, then round to a multiple of the quantum."""

    schema_version: Literal["fairtrial.retail-policy/1"] = "fairtrial.retail-policy/1"
    name: str = Field(min_length=1, max_length=80)
    source: str = Field(min_length=1, max_length=500)  # URL or document that states these terms
    quantum_usd: StepText
    rounding: Rounding
    rounded_per: Literal["request", "run"]
    markup_percent: StepText = "0"

    @field_validator("quantum_usd")
    @classmethod
    def _is_positive(cls, quantum: str) -> str:
        if Fraction(quantum) <= 0:
            raise ValueError("a quantum of 0 rounds to nothing; name a positive amount such as 0.01")
        return quantum


def retail_usd(usds: Sequence[Fraction], policy: RetailPolicy) -> Fraction:
    """The retail figure in USD for one run, from the exact cost in USD of each of its requests.

    A run with a request of unknown cost has no retail figure: do not leave the request out.
    Raises ValueError for a negative cost, UnpricedUsage for a figure beyond what a record can hold.
    """
    if any(usd < 0 for usd in usds):
        raise ValueError("a cost below zero has no retail figure")
    factor = 1 + Fraction(policy.markup_percent) / 100
    marked = [usd * factor for usd in usds]
    parts = marked if policy.rounded_per == "request" else [sum(marked, Fraction(0))]
    quantum = Fraction(policy.quantum_usd)
    usd = sum((_rounded(part / quantum, policy.rounding) * quantum for part in parts), Fraction(0))
    if usd >= USD_LIMIT:
        raise UnpricedUsage(f"the retail figure is {USD_LIMIT} USD or more, which no record can hold")
    return usd


def _rounded(steps: Fraction, rounding: Rounding) -> int:
    match rounding:
        case "half_up":
            return math.floor(steps + Fraction(1, 2))
        case "half_even":
            return round(steps)
        case "ceiling":
            return math.ceil(steps)
        case "floor":
            return math.floor(steps)
