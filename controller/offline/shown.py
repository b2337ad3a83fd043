"""Exact values as texts, and the rounded texts beside them that nothing is computed with."""

from __future__ import annotations

from fractions import Fraction
from typing import Optional, Union

Exact = Union[Fraction, float]  # a float only as plus or minus infinity
INFINITE = float("inf")
NOT_APPLICABLE = "n/a"
PLACES_MAX = 12


def exact_text(value: Optional[Exact]) -> Optional[str]:
    """`a/b`, `a`, `unbounded`, `-unbounded`; None stays None."""
    if value is None or isinstance(value, Fraction):
        return None if value is None else str(value)
    return "unbounded" if value > 0 else "-unbounded"


def decimal(value: Fraction, places: int) -> str:
    """Rounded half to even to so many decimals."""
    scaled = round(value * 10**places)
    digits = str(abs(scaled)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if scaled < 0 else "") + whole + ("." + part if places else "")


def shown(value: Optional[Exact], unit: str, *, at_least: bool = False, signed: bool = False) -> str:
    """A value for readers in its unit; `≥ ` before a lower bound."""
    if value is None:
        return NOT_APPLICABLE
    if not isinstance(value, Fraction):
        return "unbounded" if value > 0 else "−unbounded"
    return ("≥ " if at_least else "") + _finite(value, unit, signed).replace("-", "−")


def _finite(value: Fraction, unit: str, signed: bool) -> str:
    if unit == "share":
        text = decimal(100 * value, 1)
        return f"{'+' if value > 0 else ''}{text} points" if signed else f"{text} %"
    if unit == "usd":
        return "$" + decimal(value, 4 if value < 1 else 2)
    if unit == "ms":
        minutes = value >= 600_000
        return decimal(value / 60_000, 1) + " min" if minutes else decimal(value / 1000, 1) + " s"
    if unit in ("tokens", "count"):
        return f"{round(value):,}"
    return decimal(value, 2)


def p_shown(value: Fraction) -> str:
    """A p-value with four decimals."""
    return "< 0.0001" if value < Fraction(1, 10_000) else decimal(value, 4)


def apart(value: Fraction, bound: Fraction, places: int) -> str:
    """So many decimals, or more where fewer would hide on which side of the bound the value lies."""
    while places < PLACES_MAX and value != bound and decimal(value, places) == decimal(bound, places):
        places += 1
    return decimal(value, places)


def numbered(count: int, noun: str) -> str:
    """`1 task`, `1,234 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
