"""The rows of a dataset as integers, arm by arm and task by task."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .plan import Plan, by_id
from .rates import PROMPT_CLASSES

Row = Dict[str, Any]
ByTask = List[List[int]]
CUT_SHORT = ("timeout", "hard_limit", "infrastructure", "written_off")


class Arm:
    """All logical runs of one arm; `runs[t]` holds the repeats of task t in order. Costs are whole `money_unit`s."""

    def __init__(self, name: str, runs: List[List[Row]], money_unit: Fraction) -> None:
        self.name, self.runs, self.money_unit = name, runs, money_unit
        self.all_runs = [run for task in runs for run in task]
        self.successes = [sum(run["outcome"] == "success" for run in task) for task in runs]
        self.unknown = self.outcomes("invalid") + self.outcomes("missing")
        self.costs = self.known(self._cost)
        self.unknown_costs = sum(self._cost(run) is None for run in self.all_runs)

    def outcomes(self, outcome: str) -> int:
        """How many runs ended so."""
        return sum(run["outcome"] == outcome for run in self.all_runs)

    def known(self, value_of: Callable[[Row], Optional[int]]) -> Optional[ByTask]:
        """One value per run; None as soon as one is unknown."""
        found = [[value_of(run) for run in task] for task in self.runs]
        known = [[value for value in task if value is not None] for task in found]
        return known if list(map(len, found)) == list(map(len, known)) else None

    def _cost(self, run: Row) -> Optional[int]:
        return int(Fraction(run["usd"]) / self.money_unit) if is_measured(run) else None


def is_measured(run: Row) -> bool:
    """True when the cost of the run is known and its measurement valid."""
    return run["usd"] is not None and run["outcome"] in ("success", "failure")


def tokens(run: Row, classes: Optional[Sequence[str]] = None) -> Optional[int]:
    """Tokens of some classes, or of all, over every attempt; unknown where the cost is."""
    if not is_measured(run):
        return None
    return sum(
        int(count)
        for attempt in run["attempts"]
        for name, count in attempt["tokens"].items()
        if classes is None or name in classes
    )


def prompt_tokens(run: Row) -> Optional[int]:
    """Input tokens, cached or not."""
    return tokens(run, PROMPT_CLASSES)


def read_tokens(run: Row) -> Optional[int]:
    """Input tokens that came from a cache."""
    return tokens(run, ("read",))


def over_attempts(run: Row, name: str) -> Optional[int]:
    """The sum of a count over the attempts; None when there is none, or one is unknown."""
    counts = [attempt[name] for attempt in run["attempts"]]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def scored_attempt(run: Row) -> Optional[Row]:
    """The attempt whose outcome is the run's."""
    return next((attempt for attempt in run["attempts"] if attempt["number"] == run["scored_attempt"]), None)


def ended_normally(run: Row) -> bool:
    """True when the scored attempt did, whatever its verdict."""
    scored = scored_attempt(run)
    return scored is not None and scored["end"] == "normal"


def would_have_passed(run: Row) -> bool:
    """A patch passes, though the run is no success."""
    return run["outcome"] != "success" and any(attempt["would_have_passed"] for attempt in run["attempts"])


def is_cut_short(run: Row) -> bool:
    """The last attempt was ended from outside, so the time is a lower bound."""
    return bool(run["attempts"]) and run["attempts"][-1]["end"] in CUT_SHORT


def tables(plan: Plan, rows: List[Row]) -> Tuple[List[str], List[Arm]]:
    """The tasks of the rows in byte order of their ids, and every arm likewise on exactly those tasks."""
    tasks = sorted({row["task"] for row in rows}, key=str.encode)
    unit = Fraction(1, 10 ** max((len((row["usd"] or "").partition(".")[2]) for row in rows), default=0))
    cells: Dict[Tuple[str, str], List[Row]] = {}
    for row in sorted(rows, key=lambda each: int(each["replicate"])):
        cells.setdefault((row["arm"], row["task"]), []).append(row)
    return tasks, [Arm(arm.id, [cells[arm.id, task] for task in tasks], unit) for arm in by_id(plan.arms)]
