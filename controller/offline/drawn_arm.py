"""One arm under the resamples of the round: resampled sums and quantiles, before anything is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Dict, List, Optional, Tuple

from . import table as of
from .draws import Draws, nearest_rank
from .replicates import INFINITY, ZERO, Pair, Replicates
from .shown import INFINITE, Exact
from .table import Arm, ByTask

SHARES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10)}


@dataclass(frozen=True)
class Column:
    """A number per task: its sum, and its resampled sums."""

    total: int
    sums: List[int]


@dataclass(frozen=True)
class Quantile:
    """A nearest-rank quantile and its resamples in whole units. From `cut_from` on, a value is a lower bound only."""

    value: int
    drawn: List[Optional[int]]
    unit: Fraction
    cut_from: Optional[int]
    runs: int

    @property
    def is_lower_bound(self) -> bool:
        """True when the value itself is one."""
        return self.cut_from is not None and self.value >= self.cut_from

    @property
    def replicates(self) -> Replicates:
        """Where nothing was drawn, the quantile may be anything."""
        low = [ZERO if value is None else (value, 1) for value in self.drawn]
        high = [INFINITY if value is None else (value, 1) for value in self.drawn]
        return Replicates(low, high, self.unit)


class DrawnArm:
    """One arm under the resamples of the round."""

    def __init__(self, arm: Arm, draws: Draws) -> None:
        self.arm, self.repeats = arm, len(arm.runs[0])
        counts = {
            "succeeded": arm.successes,
            "ended_normally": [sum(map(of.ended_normally, task)) for task in arm.runs],
            "would_have_passed": [sum(map(of.would_have_passed, task)) for task in arm.runs],
            "disagreeing": [int(0 < hits < self.repeats) for hits in arm.successes],
            "cost": _sums(arm.costs),
            "tokens": _sums(arm.known(of.tokens)),
            "read": _sums(arm.known(of.read_tokens)),
            "prompt": _sums(arm.known(of.prompt_tokens)),
            **{str(hits): [int(found == hits) for found in arm.successes] for hits in range(self.repeats + 1)},
        }
        known = {name: column for name, column in counts.items() if column is not None}
        sums = draws.sums(list(known.values()))
        self.columns = {name: Column(sum(column), drawn) for (name, column), drawn in zip(known.items(), sums)}
        self.successes = self.columns["succeeded"]
        self.quantiles = _quantiles(arm, draws)

    def per_success(self, name: str) -> Optional[List[Pair]]:
        """Replicates of a sum per success, unit apart: infinite without a success, whatever was spent."""
        spent = self.columns.get(name)
        if spent is None:
            return None
        return [(n, d) if d else INFINITY for n, d in zip(spent.sums, self.successes.sums)]

    def value_per_success(self, name: str, unit: Fraction) -> Optional[Exact]:
        """The observed one; None when it is unknown."""
        spent = self.columns.get(name)
        if spent is None:
            return None
        return spent.total * unit / self.successes.total if self.successes.total else INFINITE


def _sums(values: Optional[ByTask]) -> Optional[List[int]]:
    return None if values is None else [sum(task) for task in values]


def _quantiles(arm: Arm, draws: Draws) -> Dict[str, Quantile]:
    """By estimand; one is absent when it is not known for every run that ran."""
    one = Fraction(1)
    scored = [[of.scored_attempt(run) for run in task] for task in arm.runs]
    own = [[attempt for attempt in task if attempt is not None] for task in scored]
    measured: Dict[str, Tuple[Optional[ByTask], Fraction, List[int]]] = {
        "wall_ms": (
            [[run["wall_ms"] for run in task if run["wall_ms"] is not None] for task in arm.runs],
            one,
            [run["wall_ms"] for run in arm.all_runs if run["wall_ms"] is not None and of.is_cut_short(run)],
        ),
        "scored_wall_ms": (
            [[attempt["wall_ms"] for attempt in task] for task in own],
            one,
            [attempt["wall_ms"] for task in own for attempt in task if attempt["end"] in of.CUT_SHORT],
        ),
        "usd": (arm.costs, arm.money_unit, []),
        "turns": (_of_those_that_ran(arm, "turns"), one, []),
        "tool_calls": (_of_those_that_ran(arm, "tool_calls"), one, []),
    }
    found = {}
    for metric, (values, unit, cut) in measured.items():
        if values is None or not any(values):
            continue
        pooled = [value for task in values for value in task]
        for (name, share), drawn in zip(SHARES.items(), draws.quantiles(values, list(SHARES.values()))):
            value = nearest_rank(pooled, share)
            found[f"{metric}_{name}"] = Quantile(value, drawn, unit, min(cut, default=None), len(pooled))
    return found


def _of_those_that_ran(arm: Arm, name: str) -> Optional[ByTask]:
    counts = [[of.over_attempts(run, name) for run in task if run["attempts"]] for task in arm.runs]
    known = [[count for count in task if count is not None] for task in counts]
    return known if list(map(len, counts)) == list(map(len, known)) else None
