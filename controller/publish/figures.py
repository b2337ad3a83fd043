"""The report's figures as inline SVG, drawn in percentages so that they fit any width without scaling their text.

Every figure repeats numbers that stand as text beside it, so a row's plot is hidden from screen readers and the one
free-standing figure carries a description. Coordinates are rounded to hundredths of a percent from exact numbers: the
same numbers give the same bytes. Colours come from the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Final

from markupsafe import Markup

from controller.domain.exact import UNBOUNDED, Exact, decimal_text

ROW_HEIGHT: Final = 26
SCATTER_HEIGHT: Final = 380
_STEPS: Final = (Fraction(1), Fraction(2), Fraction(5))


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale from `low` to `high`, with its tick values."""

    low: Fraction
    high: Fraction
    ticks: tuple[Fraction, ...]

    def at(self, value: Exact) -> str:
        """The place of a value as a percentage, kept inside the scale."""
        if not isinstance(value, Fraction):
            return "100" if value > 0 else "0"
        share = (value - self.low) / (self.high - self.low)
        return decimal_text(100 * min(Fraction(1), max(Fraction(0), share)), 2)

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


def around_zero(reach: Fraction) -> Scale:
    """A symmetric scale for differences, at least ten points either way."""
    step = tick_step(max(reach, Fraction(1, 10)), count=3)
    edge = step * -(-max(reach, Fraction(1, 10)) // step)
    return Scale(-edge, edge, tuple(step * number for number in range(int(-edge / step), int(edge / step) + 1)))


def from_zero(reach: Fraction) -> Scale:
    """A scale from zero to a round number at or above `reach`; one unit when there is nothing to show."""
    top = reach if reach > 0 else Fraction(1)
    step = tick_step(top, count=5)
    edge = step * -(-top // step)
    return Scale(Fraction(0), edge, tuple(step * number for number in range(int(edge / step) + 1)))


RATE: Final = Scale(Fraction(0), Fraction(1), tuple(Fraction(number, 4) for number in range(5)))


def interval_row(
    scale: Scale, low: Exact | None, value: Exact | None, high: Exact | None, *, strong: bool, baseline: Fraction | None
) -> Markup:
    """One interval with its point, over the scale's grid. A bound outside the scale ends in an arrow."""
    middle = ROW_HEIGHT // 2
    parts = [_line(scale.at(tick), 0, scale.at(tick), ROW_HEIGHT, "grid") for tick in scale.ticks]
    if baseline is not None:
        parts.append(_line(scale.at(baseline), 0, scale.at(baseline), ROW_HEIGHT, "base"))
    kind = "strong" if strong else "weak"
    if low is not None and high is not None:
        parts.append(_line(scale.at(low), middle, scale.at(high), middle, f"span {kind}"))
        parts += [_end(scale, bound, middle, kind, left=bound is low) for bound in (low, high)]
    if value is not None and not scale.beyond(value):
        parts.append(f'<circle class="dot {kind}" cx="{scale.at(value)}%" cy="{middle}" r="4.5"/>')
    return _drawn(f'<svg class="row" width="100%" height="{ROW_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>')


def axis_row(scale: Scale, labels: Sequence[str]) -> Markup:
    """The scale's tick labels, to stand under rows of intervals."""
    parts = []
    for place, (tick, text) in enumerate(zip(scale.ticks, labels, strict=True)):
        anchor = "start" if place == 0 else "end" if place == len(scale.ticks) - 1 else "middle"
        parts.append(_tick(f"{scale.at(tick)}%", "10", anchor, text))
    return _drawn(f'<svg class="row axis" width="100%" height="18" aria-hidden="true">{"".join(parts)}</svg>')


@dataclass(frozen=True, slots=True)
class Point:
    """One arm in the figure of cost against success; `key` is its letter."""

    key: str
    cost: Exact | None
    cost_low: Exact | None
    cost_high: Exact | None
    rate: Fraction
    rate_low: Exact | None
    rate_high: Exact | None


def cost_against_success(points: Sequence[Point], description: str) -> Markup | None:
    """Cost per success across, success rate upwards, both with 95 % intervals. None when no cost is known.

    An arm without a finite cost per success stands at the right edge behind an arrow.
    """
    known = [point for point in points if point.cost is not None]
    if not known:
        return None
    across = from_zero(_reach(known))
    parts = []
    for tick in across.ticks:
        parts.append(_line(across.at(tick), 0, across.at(tick), SCATTER_HEIGHT, "grid"))
    for tick in RATE.ticks:
        height = _height(tick)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{height}" y2="{height}"/>')
    for point in known:
        parts += _cross(point, across)
    for point in known:
        cost = point.cost if point.cost is not None else UNBOUNDED
        left, top = across.at(cost), _height(point.rate)
        if cost == UNBOUNDED:
            parts.append(_arrow(100, top, "strong", left=False, away=20))
        parts.append(f'<circle class="disc" cx="{left}%" cy="{top}" r="11"/>')
        parts.append(
            f'<text class="key" x="{left}%" y="{top}" dy="0.36em" text-anchor="middle">{escape(point.key)}</text>'
        )
    up = "".join(_tick("100%", _height(tick), "end", f"{decimal_text(100 * tick, 0)} %") for tick in RATE.ticks)
    places = next(places for places in range(13) if (across.ticks[1] * 10**places).denominator == 1)
    labels = "".join(
        _tick(f"{across.at(tick)}%", "12", "middle", f"${decimal_text(tick, places)}") for tick in across.ticks
    )
    return _drawn(
        f'<div class="scatter"><svg class="up" width="46" height="{SCATTER_HEIGHT}" aria-hidden="true">{up}</svg>'
        f'<svg class="field" role="img" aria-label="{escape(description)}" width="100%" height="{SCATTER_HEIGHT}">'
        f'{"".join(parts)}</svg><svg class="along" width="100%" height="20" aria-hidden="true">{labels}</svg></div>'
    )


def _reach(points: Sequence[Point]) -> Fraction:
    """The largest finite cost to show; upper bounds beyond three times the dearest arm end in an arrow instead."""
    costs = [point.cost for point in points if isinstance(point.cost, Fraction)]
    dearest = max(costs, default=Fraction(0))
    bounds = [point.cost_high for point in points if isinstance(point.cost_high, Fraction)]
    return max([dearest, *(bound for bound in bounds if bound <= 3 * dearest)])


def _height(rate: Exact) -> str:
    share = rate if isinstance(rate, Fraction) else Fraction(1 if rate > 0 else 0)
    inside = Fraction(12) + (1 - min(Fraction(1), max(Fraction(0), share))) * (SCATTER_HEIGHT - 24)
    return decimal_text(inside, 1)


def _cross(point: Point, across: Scale) -> list[str]:
    """The two intervals of one arm."""
    cost = point.cost if point.cost is not None else UNBOUNDED
    left, top, parts = across.at(cost), _height(point.rate), []
    if point.cost_low is not None and point.cost_high is not None:
        parts.append(_line(across.at(point.cost_low), top, across.at(point.cost_high), top, "span weak"))
        if across.beyond(point.cost_high):
            parts.append(_arrow(100, top, "weak", left=False))
    if point.rate_low is not None and point.rate_high is not None:
        parts.append(_line(left, _height(point.rate_low), left, _height(point.rate_high), "span weak"))
    return parts


def _drawn(markup: str) -> Markup:
    """Mark as finished markup. Every variable in it is a number made here, a fixed word, or escaped."""
    return Markup(markup)  # noqa: S704


def _tick(x: str, y: str, anchor: str, text: str) -> str:
    return f'<text class="tick" x="{x}" y="{y}" dy="0.36em" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: str, y1: int | str, x2: str, y2: int | str, style: str) -> str:
    return f'<line class="{style}" x1="{x1}%" x2="{x2}%" y1="{y1}" y2="{y2}"/>'


def _end(scale: Scale, bound: Exact, middle: int, kind: str, *, left: bool) -> str:
    if scale.beyond(bound):
        return _arrow(0 if left else 100, middle, kind, left=left)
    return _line(scale.at(bound), middle - 5, scale.at(bound), middle + 5, f"span {kind}")


def _arrow(percent: int, top: int | str, kind: str, *, left: bool, away: int = 0) -> str:
    """A chevron at the edge, moved outwards by `away`. A nested viewport places it: a path knows no percentages."""
    path = f"M{7 - away} -5 L{1 - away} 0 L{7 - away} 5" if left else f"M{away - 7} -5 L{away - 1} 0 L{away - 7} 5"
    return f'<svg x="{percent}%" y="{top}" overflow="visible"><path class="span {kind}" fill="none" d="{path}"/></svg>'
