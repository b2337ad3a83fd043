"""How the runs of an arm spread over time or money: a histogram whose censored part is hollow, with its quantiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from markupsafe import Markup

from controller.domain.exact import Exact, decimal_text
from controller.publish.figure_scales import Scale, in_decades
from controller.publish.figures import arrow, drawn, line

BARS_HEIGHT: Final = 34
RUNS_HEIGHT: Final = 52  # the bars, and below them the line from p50 to p90
_QUANTILES_MIDDLE: Final = 42


@dataclass(frozen=True, slots=True)
class Runs:
    """One arm's runs: values that are known, values that are only lower bounds, and how many have none."""

    known: tuple[Fraction, ...]
    at_least: tuple[Fraction, ...]
    unknown: int
    p50: Exact | None
    p90: Exact | None
    p50_at_least: bool  # the quantile falls on a censored value
    p90_at_least: bool

    @property
    def values(self) -> tuple[Fraction, ...]:
        return (*self.known, *self.at_least)


def runs_scale(arms: Sequence[Runs]) -> Scale | None:
    """The scale that holds every run of every arm; None when no value is known."""
    values = [value for runs in arms for value in runs.values]
    return in_decades(values) if values else None


def tallest(arms: Sequence[Runs], scale: Scale) -> int:
    """The greatest number of runs in one bin of one arm, so that bars compare across arms."""
    return max(max(Counter(map(scale.bin, runs.values)).values(), default=0) for runs in arms)


def runs_row(marks: str) -> Markup:
    """The marks of `runs_marks` for a page; nothing when there are none."""
    return drawn(
        f'<svg class="row" width="100%" height="{RUNS_HEIGHT}" aria-hidden="true">{marks}</svg>' if marks else ""
    )


def runs_marks(scale: Scale, runs: Runs, most: int) -> str:
    """Bars upwards from a base line, `RUNS_HEIGHT` high in all; the bar of `most` runs is `BARS_HEIGHT` high."""
    parts = [line(scale.at(tick), 0, scale.at(tick), RUNS_HEIGHT, "grid") for tick in scale.ticks]
    width = Fraction(100, len(scale.edges) - 1)
    closed, hollow = (Counter(map(scale.bin, values)) for values in (runs.known, runs.at_least))
    for place in sorted(closed | hollow):
        base = Fraction(BARS_HEIGHT)
        for kind, count in (("bar", closed[place]), ("bar open", hollow[place])):
            if not count:
                continue
            height = max(Fraction((BARS_HEIGHT - 2) * count, most), Fraction(3, 2))
            base -= height
            parts.append(
                f'<rect class="{kind}" x="{decimal_text(width * place + width / 20, 2)}%" '
                f'y="{decimal_text(base, 1)}" width="{decimal_text(width * 9 / 10, 2)}%" '
                f'height="{decimal_text(height, 1)}"/>'
            )
    parts.append(line("0", BARS_HEIGHT, "100", BARS_HEIGHT, "base"))
    if runs.p50 is not None and runs.p90 is not None:
        parts.append(_quantiles(scale, runs, runs.p50, runs.p90))
    return "".join(parts)


def _quantiles(scale: Scale, runs: Runs, p50: Exact, p90: Exact) -> str:
    """A line from p50, a dot, to p90, an end or an arrow out of it; the dot is hollow when the p50 is a lower bound."""
    to = "100" if runs.p90_at_least else scale.at(p90)
    end = (
        arrow(100, _QUANTILES_MIDDLE, "strong", left=False, away=15)
        if runs.p90_at_least
        else line(to, _QUANTILES_MIDDLE - 5, to, _QUANTILES_MIDDLE + 5, "span strong")
    )
    kind = "dot" if runs.p50_at_least else "dot strong"
    return (
        f"{line(scale.at(p50), _QUANTILES_MIDDLE, to, _QUANTILES_MIDDLE, 'span strong')}{end}"
        f'<circle class="{kind}" cx="{scale.at(p50)}%" cy="{_QUANTILES_MIDDLE}" r="4.5"/>'
    )
