"""Wilson's score interval for independent binary outcomes, without continuity correction.

It is not used for repeats of the same task, which are not independent; those are resampled by task.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

Z_95: Final = Decimal("1.959963984540054")
_CONTEXT: Final = Context(prec=50)


@dataclass(frozen=True, slots=True)
class WilsonInterval:
    """`rate` is exact; the bounds carry 40 correct digits, and are exactly 0 or 1 at the ends."""

    rate: Fraction
    low: Decimal
    high: Decimal


def wilson(successes: int, count: int, z: Decimal = Z_95) -> WilsonInterval | None:
    """The two-sided interval; None of no observations, which is neither 0 nor NaN. Raises ValueError."""
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} successes of {count}")
    if count == 0:
        return None
    exact = _CONTEXT
    total, hits, square = Decimal(count), Decimal(successes), exact.multiply(z, z)
    centre = exact.add(hits, exact.divide(square, Decimal(2)))
    spread = exact.add(exact.divide(exact.multiply(hits, total - hits), total), exact.divide(square, Decimal(4)))
    reach = exact.multiply(z, exact.sqrt(spread))
    whole = exact.add(total, square)
    low = Decimal(0) if successes == 0 else exact.divide(exact.subtract(centre, reach), whole)
    high = Decimal(1) if successes == count else exact.divide(exact.add(centre, reach), whole)
    return WilsonInterval(rate=Fraction(successes, count), low=low, high=high)


def bound_text(bound: Decimal) -> str:
    """A bound with its 40 decimals; exactly "0" or "1" at the ends."""
    return str(bound) if bound in (0, 1) else format(bound, ".40f")
