"""Money as exact rationals of a US dollar; rounding only at display.

Rates are integer nano-dollars per million tokens, so one token costs an exact rational and sums stay exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, DivisionByZero, FloatOperation, Inexact, InvalidOperation, Overflow, Underflow
from fractions import Fraction
from typing import Annotated, Final

from pydantic import StringConstraints

from controller.domain.exact import decimal_text

NANO_PER_USD: Final = 1_000_000_000
TOKENS_PER_RATE_UNIT: Final = 1_000_000

USD_LIMIT: Final = 10**13  # a `UsdText` has at most 13 digits before the point
USD_PATTERN: Final = r"^(0|[1-9][0-9]{0,12})(\.[0-9]{1,30})?$"

# An exact amount in evidence: a decimal string, never a float. Rates per million always give one that terminates.
UsdText = Annotated[str, StringConstraints(pattern=USD_PATTERN)]

# Sums are Fractions. Where a library hands us a Decimal it is made and used in this context, which rather stops than
# rounds. Fifty digits hold every `UsdText`.
EXACT: Final = Context(prec=50, traps=[Inexact, FloatOperation, InvalidOperation, DivisionByZero, Overflow, Underflow])


def usd_from_text(text: str) -> Fraction:
    """The exact value of a decimal string such as "0.052048". Raises ValueError for any other spelling."""
    if not re.fullmatch(USD_PATTERN, text):
        raise ValueError(f"{text[:60]!r} is not an exact amount of dollars")
    return Fraction(text)


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
    return decimal_text(amount, max(twos, fives))


def sum_usd(parts: Iterable[UsdText | None]) -> UsdText | None:
    """The exact sum of decimal strings; None as soon as one part is unknown."""
    total = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total += usd_from_text(part)
    return usd_to_text(total)


def usd_display(amount: Fraction, places: int = 4) -> str:
    """The amount for a reader, rounded half to even: `$0.0521`."""
    return f"${decimal_text(amount, places)}"
