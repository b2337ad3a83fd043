"""Exact numbers for estimates: rationals, and the two infinities that a ratio can reach.

A float appears here only as plus or minus infinity, which compares exactly with any rational; every finite value is a
`Fraction`. In JSON an exact value is a string: "a/b", "a", "unbounded" or "-unbounded"; null means not applicable.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

Exact = Fraction | float
UNBOUNDED: Final[float] = math.inf
UNBOUNDED_TEXT: Final = "unbounded"


def exact_text(value: Exact | None) -> str | None:
    """The exact string of a value; None stays None. Raises ValueError for a finite float, which is never exact."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        return str(value)
    if value == UNBOUNDED:
        return UNBOUNDED_TEXT
    if value == -UNBOUNDED:
        return f"-{UNBOUNDED_TEXT}"
    raise ValueError(f"{value!r} is a float, not an exact number")


def exact_from_text(text: str | None) -> Exact | None:
    """The value of a string made by `exact_text`, also of a plain decimal such as "0.25". Raises ValueError."""
    if text is None:
        return None
    if text == UNBOUNDED_TEXT:
        return UNBOUNDED
    if text == f"-{UNBOUNDED_TEXT}":
        return -UNBOUNDED
    return Fraction(text)


def decimal_text(value: Fraction, places: int) -> str:
    """The value rounded half to even to so many decimals: `decimal_text(Fraction(1, 3), 4)` is "0.3333"."""
    scaled = round(value * 10**places)
    sign, digits = ("-", -scaled) if scaled < 0 else ("", scaled)
    if places == 0:
        return f"{sign}{digits}"
    whole, part = divmod(digits, 10**places)
    return f"{sign}{whole}.{part:0{places}d}"
