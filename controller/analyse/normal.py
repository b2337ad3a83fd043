"""The normal distribution for planning and for columns that decide nothing. No decision rests on it."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist
from typing import Final

from controller.analyse.holm import ALPHA

POWER: Final = Fraction(4, 5)
_STANDARD: Final = NormalDist()
_DIGITS: Final = 10**9  # a quantile is rounded to so many parts: coarser than any machine's last bit


def quantile(probability: Fraction) -> Fraction:
    """z of a probability strictly between 0 and 1, rounded to nine decimals, so that it is the same on any machine."""
    return Fraction(round(_STANDARD.inv_cdf(float(probability)) * _DIGITS), _DIGITS)


def critical(level: Fraction = ALPHA) -> Fraction:
    """z of a two-sided test at this level."""
    return -quantile(level / 2)


def detectable_factor(level: Fraction = ALPHA, power: Fraction = POWER) -> Fraction:
    """How many standard errors a true difference must measure to be told from zero with this power."""
    return critical(level) + quantile(power)


def below(value: float) -> float:
    """The probability of a standard normal value at or below this one."""
    return _STANDARD.cdf(value)
