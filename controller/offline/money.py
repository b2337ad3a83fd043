"""US dollars as exact rationals; the text of an amount is its shortest decimal form."""

from __future__ import annotations

from fractions import Fraction
from typing import Iterable, Optional

from .refusal import Refused

NANO = 10**9
LIMIT = 10**13


def usd_text(amount: Fraction) -> str:
    """The exact decimal text of an amount that has one."""
    places = 0
    while (amount * 10**places).denominator != 1:
        places += 1
        if places > 60:
            raise Refused(f"{amount} dollars have no finite decimal form")
    if places == 0:
        return str(amount.numerator)
    whole, part = divmod(int(amount * 10**places), 10**places)
    return f"{whole}.{part:0{places}d}"


def total(parts: Iterable[Optional[str]]) -> Optional[str]:
    """The exact sum; None as soon as one part is unknown."""
    found = Fraction(0)
    for part in parts:
        if part is None:
            return None
        found += Fraction(part)
    return usd_text(found)
