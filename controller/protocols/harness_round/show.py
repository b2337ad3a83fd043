"""Exact values for readers' eyes: rounded once, at the very end, and never computed with."""

from __future__ import annotations

from fractions import Fraction

from controller.domain.exact import Exact, decimal_text
from controller.protocols.harness_round.estimates import Unit

NOT_APPLICABLE = "n/a"


def shown(value: Exact | None, unit: Unit, *, at_least: bool = False, signed: bool = False) -> str:
    """`66.7 %`, `$0.0521`, `12.3 s`, `48,210`, `0.87`; "unbounded"; "n/a" for None; `≥ ` before a lower bound."""
    if value is None:
        return NOT_APPLICABLE
    if not isinstance(value, Fraction):
        return "unbounded" if value > 0 else "−unbounded"
    text = _finite(value, unit, signed=signed).replace("-", "−")
    return f"≥ {text}" if at_least else text


def _finite(value: Fraction, unit: Unit, *, signed: bool) -> str:
    if unit == "share":
        plus = "+" if signed and value > 0 else ""
        return f"{plus}{decimal_text(100 * value, 1)} {'points' if signed else '%'}"
    if unit == "usd":
        return f"${decimal_text(value, 4 if value < 1 else 2)}"
    if unit == "ms":
        return f"{decimal_text(value / 1000, 1)} s" if value < 600_000 else f"{decimal_text(value / 60_000, 1)} min"
    if unit in ("tokens", "count"):
        return grouped(round(value))
    return decimal_text(value, 2)


def grouped(number: int) -> str:
    """Thousands apart by a comma."""
    return f"{number:,}"


def p_shown(value: Fraction) -> str:
    """A p-value with four decimals; `< 0.0001` below that."""
    return "< 0.0001" if value < Fraction(1, 10_000) else decimal_text(value, 4)
