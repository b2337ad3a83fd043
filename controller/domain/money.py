"""Money as exact rationals of a US dollar; rounding only at display.

Rates are integer nano-dollars per million tokens, so one token costs an exact rational and sums stay exact.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Annotated, Final

from pydantic import StringConstraints

NANO_PER_USD: Final = 1_000_000_000
TOKENS_PER_RATE_UNIT: Final = 1_000_000

# An exact amount in evidence: a decimal string, never a float. Rates per million always give one that terminates.
UsdText = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,12})(\.[0-9]{1,30})?$")]


def usd_from_text(text: str) -> Fraction:
    """The exact value of a decimal string such as "0.052048"."""
    return Fraction(Decimal(text))


def usd_to_text(amount: Fraction) -> str:
    """The exact decimal string of an amount whose denominator has only the factors 2 and 5.

    Raises ValueError for an amount that has no finite decimal form.
    """
    denominator, twos, fives = amount.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        raise ValueError(f"{amount} has no finite decimal form")
    places = max(twos, fives)
    scaled = amount.numerator * 10**places // amount.denominator
    if places == 0:
        return str(scaled)
    sign, digits = ("-", -scaled) if scaled < 0 else ("", scaled)
    whole, part = divmod(digits, 10**places)
    return f"{sign}{whole}.{part:0{places}d}"


def usd_display(amount: Fraction, places: int = 4) -> str:
    """The amount for a reader, rounded half to even: `$0.0521`."""
    quantum = Decimal(1).scaleb(-places)
    value = Decimal(amount.numerator) / Decimal(amount.denominator)
    return f"${value.quantize(quantum, rounding=ROUND_HALF_EVEN)}"
