"""How the runs of an arm spread over time or money: a histogram whose censored part is hollow, with its quantiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from markupsafe import Markup

from controller.domain.dataset import LogicalRunRow
from controller.domain.exact import Exact, decimal_text, exact_from_text
from controller.domain.money import usd_from_text
from controller.protocols.harness_round.estimates import Analysis, ArmAnalysis, Unit
from controller.protocols.harness_round.show import shown
from controller.publish.figure_scales import Scale, decimals, in_decades
from controller.publish.figures import arrow, drawn, line

Measure = Literal["time", "cost"]
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


@dataclass(frozen=True, slots=True)
class Spread:
    """How the logical runs of every arm spread, on one scale for all arms: in words and, where there is one, drawn."""

    scale: Scale | None
    labels: tuple[str, ...]
    words: Mapping[str, str]
    marks: Mapping[str, str]


def spread_of(analysis: Analysis, rows: Sequence[LogicalRunRow], measure: Measure) -> Spread:
    """The spread over the analysis's tasks. An arm without a known value has words only."""
    unit: Unit = "ms" if measure == "time" else "usd"
    primary = set(analysis.task_ids)
    chosen = [row for row in rows if row.task in primary]
    runs = {arm.arm: _spread(arm, [row for row in chosen if row.arm == arm.arm], measure) for arm in analysis.arms}
    scale = runs_scale(list(runs.values()))
    most = tallest(list(runs.values()), scale) if scale else 0
    return Spread(
        scale=scale,
        labels=tuple(_short(tick, unit) for tick in scale.ticks) if scale else (),
        words={arm: _words(one, unit) for arm, one in runs.items()},
        marks={arm: runs_marks(scale, one, most) for arm, one in runs.items() if one.values} if scale else {},
    )


def _words(runs: Runs, unit: Unit) -> str:
    low, high = shown(runs.p50, unit, at_least=runs.p50_at_least), shown(runs.p90, unit, at_least=runs.p90_at_least)
    said = f"p50 {low}, p90 {high}"
    said += f"; {len(runs.at_least)} cut short" if runs.at_least else ""
    return said + (f"; {runs.unknown} of {len(runs.values) + runs.unknown} not known" if runs.unknown else "")


def _spread(arm: ArmAnalysis, rows: Sequence[LogicalRunRow], measure: Measure) -> Runs:
    estimand = "wall_ms" if measure == "time" else "usd"
    p50, p90 = arm.quantile(f"{estimand}_p50"), arm.quantile(f"{estimand}_p90")
    if measure == "time":
        known = [Fraction(row.wall_ms) for row in rows if row.wall_ms is not None and not row.is_censored]
        cut = [Fraction(row.wall_ms) for row in rows if row.wall_ms is not None and row.is_censored]
    else:
        costs = [row.usd for row in rows if row.outcome not in ("invalid", "missing")]
        known, cut = [usd_from_text(cost) for cost in costs if cost is not None], []
    return Runs(
        known=tuple(known),
        at_least=tuple(cut),
        unknown=len(rows) - len(known) - len(cut),
        p50=exact_from_text(p50.value),
        p90=exact_from_text(p90.value),
        p50_at_least=p50.lower_bound_only,
        p90_at_least=p90.lower_bound_only,
    )


def _short(value: Fraction, unit: Unit) -> str:
    """A round value as a tick label: `$0.05`, `20 s`, `600 s`."""
    if unit == "usd":
        return f"${decimal_text(value, decimals(value, 2))}"
    seconds = value / 1000
    return f"{decimal_text(seconds, decimals(seconds))} s"


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
