"""Latency of the verified cases of one cell, and the times of those that ended otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from controller.analyse.cost_cohort import Case, StackCases
from controller.analyse.quantile import at_rank, median
from controller.domain.exact import exact_text
from controller.domain.outcome import EndKind
from controller.protocols.cost_index.estimates import Latency, Times
from controller.protocols.cost_index.show import NOT_APPLICABLE, seconds_shown

P95: Final = Fraction(95, 100)
# The case came to no end of its own: how long it would have taken is not known, so it is no fast failure.
_LOST: Final = frozenset({EndKind.INFRASTRUCTURE, EndKind.WRITTEN_OFF})


def ended_by(case: Case) -> str:
    """`verified`, `timeout`, `failure` or `censored`."""
    if case.verified is None or case.row is None:
        return "censored"
    if case.verified:
        return "verified"
    last = case.row.attempts[-1].end
    return "censored" if last in _LOST else "timeout" if last is EndKind.TIMEOUT else "failure"


def latency_of(cell: StackCases) -> Latency:
    """Every case is in exactly one of the four groups."""
    groups: dict[str, list[int | None]] = {"verified": [], "failure": [], "timeout": [], "censored": []}
    for case in cell.cases:
        groups[ended_by(case)].append(case.row.latency_ms if case.row is not None else None)
    seen = [time for time in groups["censored"] if time is not None]
    return Latency(
        verified=_times(groups["verified"], "there is no verified case"),
        failures=_times(groups["failure"], "there is no such case"),
        timeouts=_times(groups["timeout"], "there is no such case"),
        censored=len(groups["censored"]),
        censored_longest_ms=max(seen, default=None),
    )


def _times(times: Sequence[int | None], none: str) -> Times:
    """No quantile unless every time is known: those that are may be the fast ones."""
    known = [Fraction(time) for time in times if time is not None]
    if not times or len(known) < len(times):
        reason = f"the time of {len(times) - len(known)} of {len(times)} cases is not known" if times else none
        return Times(
            cases=len(times), timed=len(known), median_ms=None, p95_ms=None, shown=NOT_APPLICABLE, reason=reason
        )
    middle, late = median(known), at_rank(known, P95)
    assert isinstance(middle, Fraction) and isinstance(late, Fraction)
    return Times(
        cases=len(times),
        timed=len(known),
        median_ms=exact_text(middle),
        p95_ms=exact_text(late),
        shown=f"median {seconds_shown(middle)}, p95 {seconds_shown(late)}",
    )
