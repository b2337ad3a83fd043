"""Scales: where an exact number stands on an axis, as a percentage of its width. The same numbers give the same text.

A scale in decades is linear between neighbouring preferred numbers, which stand at equal distances. That is a
logarithmic scale to the eye, and needs no logarithm, whose last digit differs between machines.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.domain.exact import Exact, decimal_text

_STEPS: Final = (Fraction(1), Fraction(2), Fraction(5))
_TWELFTHS: Final = tuple(Fraction(ten, 10) for ten in (10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82))
_DECADES_FINE_MAX: Final = 4  # beyond it, twelve bins a decade are too thin to see
_BINS_MIN: Final = 12  # also when all values are equal; there is a decade to spare on either side
_RATIO_REACH_MAX: Final = Fraction(100)  # a bound beyond it ends in an arrow


@dataclass(frozen=True, slots=True)
class Scale:
    """Neighbouring `edges` stand at equal distances, and between them the scale is linear. `ticks` lie within."""

    edges: tuple[Fraction, ...]
    ticks: tuple[Fraction, ...]

    @property
    def low(self) -> Fraction:
        return self.edges[0]

    @property
    def high(self) -> Fraction:
        return self.edges[-1]

    def at(self, value: Exact) -> str:
        """The place of a value as a percentage, kept inside the scale."""
        if not isinstance(value, Fraction):
            return "100" if value > 0 else "0"
        return decimal_text(100 * self.share(value), 2)

    def share(self, value: Exact) -> Fraction:
        """The place of a value as a share of the width, kept inside the scale."""
        if value >= self.high or value <= self.low or not isinstance(value, Fraction):
            return Fraction(int(value > self.low))
        place = self.bin(value)
        low, high = self.edges[place : place + 2]
        return (place + (value - low) / (high - low)) / (len(self.edges) - 1)

    def bin(self, value: Fraction) -> int:
        """Between which edges the value lies, counted from zero; the last edge belongs to the last bin."""
        return min(max(bisect_right(self.edges, value) - 1, 0), len(self.edges) - 2)

    def beyond(self, value: Exact) -> bool:
        """True when the value cannot be shown at its place."""
        return not isinstance(value, Fraction) or not self.low <= value <= self.high


def tick_step(span: Fraction, count: int = 5) -> Fraction:
    """The smallest of 1, 2 or 5 times a power of ten that divides the span into at most `count` steps."""
    power = Fraction(1)
    while power * count < span:
        power *= 10
    while power * count >= 10 * span:
        power /= 10
    return next(step * power / 10 for step in (*_STEPS, Fraction(10)) if step * power / 10 * count >= span)


def decimals(tick: Fraction, least: int = 0) -> int:
    """How many decimals show a tick exactly, and at least so many. A tick is a whole number over a power of ten."""
    return next(places for places in itertools.count(least) if (tick * 10**places).denominator == 1)


def around_zero(reach: Fraction) -> Scale:
    """A symmetric scale for differences, at least ten points either way."""
    step = tick_step(max(reach, Fraction(1, 10)), count=3)
    edge = step * -(-max(reach, Fraction(1, 10)) // step)
    return Scale((-edge, edge), tuple(step * number for number in range(int(-edge / step), int(edge / step) + 1)))


def from_zero(reach: Fraction) -> Scale:
    """A scale from zero to a round number at or above `reach`; one unit when there is nothing to show."""
    top = reach if reach > 0 else Fraction(1)
    step = tick_step(top, count=5)
    edge = step * -(-top // step)
    return Scale((Fraction(0), edge), tuple(step * number for number in range(int(edge / step) + 1)))


def around_one(reach: Fraction) -> Scale:
    """A scale for ratios from 1/edge to edge in steps of 1, 2 and 5 and their inverses: twice at least, 100 at most."""
    above = [Fraction(1)]
    for power in (1, 10, 100):
        above += [step * power for step in _STEPS if step * power > above[-1]]
    wanted = min(max(reach, Fraction(2)), _RATIO_REACH_MAX)
    kept = above[: next(place for place, edge in enumerate(above) if edge >= wanted) + 1]
    edges = (*(1 / edge for edge in reversed(kept[1:])), *kept)
    ticks = edges if len(edges) <= 7 else tuple(edge for edge in edges if edge in _decade_ticks(edges))
    return Scale(edges, ticks)


def in_decades(values: Sequence[Fraction]) -> Scale:
    """A scale over values of zero or more, in bins of about equal ratio; zeros stand in a bin of their own."""
    positive = [value for value in values if value > 0] or [Fraction(1)]
    least, most = min(positive), max(positive)
    power = _power_at_most(least) / 10
    edges = [power]
    while edges[-1] <= 10 * most:
        edges += [power * step for step in (*_TWELFTHS[1:], Fraction(10))]
        power *= 10
    decades = len(edges) // len(_TWELFTHS) - 2
    if decades > _DECADES_FINE_MAX:
        edges = edges[::2]
    first = max(place for place, edge in enumerate(edges) if edge <= least)
    last = min(place for place, edge in enumerate(edges) if edge > most)
    few = max(0, _BINS_MIN - (last - first)) // 2
    edges = edges[first - few : last + few + 1]
    ticks = _decade_ticks(edges) if decades > _DECADES_FINE_MAX else _step_ticks(edges)
    if any(value == 0 for value in values):
        edges, ticks = [Fraction(0), *edges], [Fraction(0), *ticks]
    return Scale(tuple(edges), tuple(ticks) if len(ticks) > 1 else (edges[0], edges[-1]))


def _step_ticks(edges: Sequence[Fraction]) -> list[Fraction]:
    """Every 1, 2 and 5 times a power of ten within the edges."""
    ticks = []
    power = _power_at_most(edges[0])
    while power <= edges[-1]:
        ticks += [step * power for step in _STEPS if edges[0] <= step * power <= edges[-1]]
        power *= 10
    return ticks


def _decade_ticks(edges: Sequence[Fraction]) -> list[Fraction]:
    return [tick for tick in _step_ticks(edges) if tick == _power_at_most(tick)]


def _power_at_most(value: Fraction) -> Fraction:
    """The greatest power of ten at or below a positive value."""
    power = Fraction(1)
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return power


RATE: Final = Scale((Fraction(0), Fraction(1)), tuple(Fraction(number, 4) for number in range(5)))


def even_apart(places: Sequence[Fraction], least: Fraction) -> list[bool]:
    """Which of these rising places may carry a label when two labels need at least that distance: the first, and on."""
    shown = [True] * len(places)
    last = places[0]
    for number, (_, place) in enumerate(itertools.pairwise(places), start=1):
        shown[number] = place - last >= least
        last = place if shown[number] else last
    return shown
