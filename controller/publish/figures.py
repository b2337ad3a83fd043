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
from controller.publish.figure_scales import RATE, Scale, decimals, from_zero

ROW_HEIGHT: Final = 26
SCATTER_HEIGHT: Final = 380
KEY_RADIUS: Final = 11
_FIELD_WIDTH_MIN: Final = 240  # of the narrowest phone: what lies apart there lies apart on any wider one


def interval_row(
    scale: Scale, low: Exact | None, value: Exact | None, high: Exact | None, *, strong: bool, baseline: Fraction | None
) -> Markup:
    """One interval with its point, over the scale's grid. A bound outside the scale ends in an arrow."""
    parts = interval_marks(scale, low, value, high, strong=strong, baseline=baseline)
    return drawn(f'<svg class="row" width="100%" height="{ROW_HEIGHT}" aria-hidden="true">{parts}</svg>')


def interval_marks(
    scale: Scale, low: Exact | None, value: Exact | None, high: Exact | None, *, strong: bool, baseline: Fraction | None
) -> str:
    """What stands inside an `interval_row`, `ROW_HEIGHT` high."""
    middle = ROW_HEIGHT // 2
    parts = [line(scale.at(tick), 0, scale.at(tick), ROW_HEIGHT, "grid") for tick in scale.ticks]
    if baseline is not None:
        parts.append(line(scale.at(baseline), 0, scale.at(baseline), ROW_HEIGHT, "base"))
    kind = "strong" if strong else "weak"
    if low is not None and high is not None:
        parts.append(line(scale.at(low), middle, scale.at(high), middle, f"span {kind}"))
        parts += [_end(scale, bound, middle, kind) for bound in (low, high)]
    if value is not None and not scale.beyond(value):
        parts.append(f'<circle class="dot {kind}" cx="{scale.at(value)}%" cy="{middle}" r="4.5"/>')
    return "".join(parts)


def axis_row(scale: Scale, labels: Sequence[str]) -> Markup:
    """The scale's tick labels, to stand under rows of intervals."""
    return drawn(f'<svg class="row axis" width="100%" height="18" aria-hidden="true">{axis_marks(scale, labels)}</svg>')


def axis_marks(scale: Scale, labels: Sequence[str]) -> str:
    """What stands inside an `axis_row`."""
    parts = []
    for tick, text in zip(scale.ticks, labels, strict=True):
        anchor = {Fraction(0): "start", Fraction(1): "end"}.get(scale.share(tick), "middle")
        parts.append(tick_label(f"{scale.at(tick)}%", "10", anchor, text))
    return "".join(parts)


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


@dataclass(frozen=True, slots=True)
class Scatter:
    """The figure's three viewports: the field, its labels upwards (46 wide), its labels along (20 high)."""

    field: str
    up: str
    along: str


def cost_against_success(points: Sequence[Point], description: str) -> Markup | None:
    """Cost per success across, success rate upwards, both with 95 % intervals. None when no cost is known.

    An arm without a finite cost per success stands at the right edge behind an arrow. Letters that would cover one
    another are moved up or down, with a line to their place.
    """
    made = scatter(points)
    if made is None:
        return None
    return drawn(
        f'<div class="scatter"><svg class="up" width="46" height="{SCATTER_HEIGHT}" aria-hidden="true">{made.up}</svg>'
        f'<svg class="field" role="img" aria-label="{escape(description)}" width="100%" height="{SCATTER_HEIGHT}">'
        f'{made.field}</svg><svg class="along" width="100%" height="20" aria-hidden="true">{made.along}</svg></div>'
    )


def scatter(points: Sequence[Point]) -> Scatter | None:
    """The parts of `cost_against_success`."""
    known = [point for point in points if point.cost is not None]
    if not known:
        return None
    across = from_zero(_reach(known))
    parts = []
    for tick in across.ticks:
        parts.append(line(across.at(tick), 0, across.at(tick), SCATTER_HEIGHT, "grid"))
    for tick in RATE.ticks:
        parts.append(line("0", _height(tick), "100", _height(tick), "grid"))
    for point in known:
        parts += _cross(point, across)
    moves = _moves(known, across)
    for point, moved in zip(known, moves, strict=True):
        parts += _leader(point, across, moved) if moved else []
    for point, moved in zip(known, moves, strict=True):
        parts += _key(point, across, moved)
    up = "".join(tick_label("100%", _height(tick), "end", f"{decimal_text(100 * tick, 0)} %") for tick in RATE.ticks)
    places = decimals(across.ticks[1])
    along = "".join(
        tick_label(f"{across.at(tick)}%", "12", "middle", f"${decimal_text(tick, places)}") for tick in across.ticks
    )
    return Scatter("".join(parts), up, along)


def _leader(point: Point, across: Scale, moved: int) -> list[str]:
    """A dot at the place that a moved letter left, and the line to it."""
    left, top = across.at(_cost(point)), _top(point.rate)
    place, disc = decimal_text(top, 1), decimal_text(top + moved, 1)
    dot = f'<circle class="dot strong" cx="{left}%" cy="{place}" r="4"/>'
    return [line(left, place, left, disc, "span strong"), dot]


def _key(point: Point, across: Scale, moved: int) -> list[str]:
    """The arm's letter in a disc, with an arrow when its cost is infinite."""
    left, disc = across.at(_cost(point)), decimal_text(_top(point.rate) + moved, 1)
    parts = [arrow(100, disc, "strong", left=False, away=20)] if _cost(point) == UNBOUNDED else []
    parts.append(f'<circle class="disc" cx="{left}%" cy="{disc}" r="{KEY_RADIUS}"/>')
    parts.append(
        f'<text class="key" x="{left}%" y="{disc}" dy="0.36em" text-anchor="middle">{escape(point.key)}</text>'
    )
    return parts


def _moves(points: Sequence[Point], across: Scale) -> list[int]:
    """How far each letter moves so that none covers another; nothing where the field has no room left."""
    apart = 2 * KEY_RADIUS + 1
    steps = [step * sign for step in range(0, SCATTER_HEIGHT, apart) for sign in (-1, 1)]
    taken: list[tuple[Fraction, Fraction]] = []
    moves = []
    for point in points:
        left, top = across.share(_cost(point)) * _FIELD_WIDTH_MIN, _top(point.rate)
        near = [other for x, other in taken if abs(x - left) < apart]
        free = (
            step
            for step in steps
            if KEY_RADIUS <= top + step <= SCATTER_HEIGHT - KEY_RADIUS
            and all(abs(top + step - other) >= apart for other in near)
        )
        moves.append(next(free, 0))
        taken.append((left, top + moves[-1]))
    return moves


def _cost(point: Point) -> Exact:
    return point.cost if point.cost is not None else UNBOUNDED


def _reach(points: Sequence[Point]) -> Fraction:
    """The largest finite cost to show; upper bounds beyond three times the dearest arm end in an arrow instead."""
    costs = [point.cost for point in points if isinstance(point.cost, Fraction)]
    dearest = max(costs, default=Fraction(0))
    bounds = [point.cost_high for point in points if isinstance(point.cost_high, Fraction)]
    return max([dearest, *(bound for bound in bounds if bound <= 3 * dearest)])


def _top(rate: Exact) -> Fraction:
    return Fraction(12) + (1 - RATE.share(rate)) * (SCATTER_HEIGHT - 24)


def _height(rate: Exact) -> str:
    return decimal_text(_top(rate), 1)


def _cross(point: Point, across: Scale) -> list[str]:
    """The two intervals of one arm."""
    left, top, parts = across.at(_cost(point)), _height(point.rate), []
    if point.cost_low is not None and point.cost_high is not None:
        parts.append(line(across.at(point.cost_low), top, across.at(point.cost_high), top, "span weak"))
        if across.beyond(point.cost_high):
            parts.append(arrow(100, top, "weak", left=False, away=14))  # clear of a letter at the edge
    if point.rate_low is not None and point.rate_high is not None:
        parts.append(line(left, _height(point.rate_low), left, _height(point.rate_high), "span weak"))
    return parts


def drawn(markup: str) -> Markup:
    """Mark as finished markup. Every variable in it is a number made here, a fixed word, or escaped."""
    return Markup(markup)  # noqa: S704


def tick_label(x: str, y: str, anchor: str, text: str, style: str = "tick") -> str:
    """A line of text whose middle is at that height."""
    return f'<text class="{style}" x="{x}" y="{y}" dy="0.36em" text-anchor="{anchor}">{escape(text)}</text>'


def line(x1: str, y1: int | str, x2: str, y2: int | str, style: str) -> str:
    return f'<line class="{style}" x1="{x1}%" x2="{x2}%" y1="{y1}" y2="{y2}"/>'


def _end(scale: Scale, bound: Exact, middle: int, kind: str) -> str:
    if scale.beyond(bound):
        left = bound < scale.low
        return arrow(0 if left else 100, middle, kind, left=left)
    return line(scale.at(bound), middle - 5, scale.at(bound), middle + 5, f"span {kind}")


def arrow(percent: int, top: int | str, kind: str, *, left: bool, away: int = 0) -> str:
    """A chevron at the edge, moved outwards by `away`. A nested viewport places it: a path knows no percentages."""
    path = f"M{7 - away} -5 L{1 - away} 0 L{7 - away} 5" if left else f"M{away - 7} -5 L{away - 1} 0 L{away - 7} 5"
    return f'<svg x="{percent}%" y="{top}" overflow="visible"><path class="span {kind}" fill="none" d="{path}"/></svg>'
