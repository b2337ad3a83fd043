"""The dataset as integers, arm by arm and task by task, ready to be resampled by whole tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd

from controller.analyse.plan import PlanInputs
from controller.domain.dataset import AttemptRow, LogicalRunRow
from controller.domain.outcome import EndKind
from controller.domain.rating import PROMPT_CLASSES

ByTask = list[list[int]]


@dataclass(frozen=True)
class ArmTable:
    """All logical runs of one arm on the tasks in scope; `runs[t]` holds the repeats of task t in order.

    `costs` has the same shape, in whole `money_unit`s, the same for every arm; None is an unknown cost.
    """

    arm: str
    runs: tuple[tuple[LogicalRunRow, ...], ...]
    costs: tuple[tuple[int | None, ...], ...]
    money_unit: Fraction

    @cached_property
    def successes(self) -> tuple[int, ...]:
        """Successes per task."""
        return tuple(sum(run.outcome == "success" for run in task) for task in self.runs)

    @cached_property
    def all_runs(self) -> tuple[LogicalRunRow, ...]:
        return tuple(run for task in self.runs for run in task)

    @cached_property
    def outcomes(self) -> Counter[str]:
        """How many runs ended in each outcome."""
        return Counter(run.outcome for run in self.all_runs)

    @property
    def unknown(self) -> int:
        """Runs whose outcome cannot be vouched for: invalid and missing ones."""
        return self.outcomes["invalid"] + self.outcomes["missing"]

    @property
    def unknown_costs(self) -> int:
        return sum(cost is None for task in self.costs for cost in task)

    def values(self, of: Callable[[LogicalRunRow], int | None]) -> ByTask | None:
        """One value per run and task, or None as soon as one run's value is unknown."""
        return all_known([[of(run) for run in task] for task in self.runs])

    def known_costs(self) -> ByTask | None:
        """The cost of every run in `money_unit`s, or None as soon as one is unknown."""
        return all_known(self.costs)


def all_known(table: Sequence[Sequence[int | None]]) -> ByTask | None:
    """The table as it is when every value is known; otherwise None."""
    known = [[value for value in task if value is not None] for task in table]
    return known if all(len(one) == len(other) for one, other in zip(table, known, strict=True)) else None


@dataclass(frozen=True, slots=True)
class Table:
    """Every arm on the same tasks, tasks in byte order of their ids."""

    tasks: tuple[str, ...]
    clusters: int
    replicates: int
    scope: str
    arms: dict[str, ArmTable]


def scope_of(rows: Sequence[LogicalRunRow]) -> str:
    """ "sealed" when the round has a sealed task: then the headline is about those. Otherwise "all"."""
    return "sealed" if any(row.visibility == "sealed" for row in rows) else "all"


def table_of(rows: Sequence[LogicalRunRow], plan: PlanInputs, scope: str) -> Table:
    """The checked rows in scope, by arm, task and repeat."""
    chosen = [row for row in rows if scope == "all" or row.visibility == scope]
    tasks = tuple(sorted({row.task for row in chosen}))
    places = max((len(row.usd.partition(".")[2]) for row in chosen if row.usd is not None), default=0)
    by_cell: dict[tuple[str, str], list[tuple[LogicalRunRow, int | None]]] = {}
    for row in sorted(chosen, key=lambda each: each.replicate):
        by_cell.setdefault((row.arm, row.task), []).append((row, _cost(row, places)))
    shared = gcd(*(cost for cell in by_cell.values() for _, cost in cell if cost is not None)) or 1
    arms = {}
    for arm in sorted(plan.arms):
        cells = [by_cell[arm, task] for task in tasks]
        runs = tuple(tuple(run for run, _ in cell) for cell in cells)
        costs = tuple(tuple(None if cost is None else cost // shared for _, cost in cell) for cell in cells)
        arms[arm] = ArmTable(arm, runs, costs, Fraction(shared, 10**places))
    return Table(tasks, len({row.cluster for row in chosen}), plan.replicates, scope, arms)


def _cost(run: LogicalRunRow, places: int) -> int | None:
    """The cost of every attempt in units of 10**-places; None when unknown, and for a run that was not measured."""
    if run.usd is None or run.outcome in ("invalid", "missing"):
        return None
    whole, _, part = run.usd.partition(".")
    return int(whole + part.ljust(places, "0"))


def total_tokens(run: LogicalRunRow) -> int | None:
    """Tokens of all billable classes over every attempt; None when the cost is unknown, for then tokens are too."""
    if run.usd is None or run.outcome in ("invalid", "missing"):
        return None
    return sum(sum(attempt.tokens.values()) for attempt in run.attempts)


def turns(run: LogicalRunRow) -> int | None:
    return _over_attempts(run, lambda attempt: attempt.turns)


def tool_calls(run: LogicalRunRow) -> int | None:
    return _over_attempts(run, lambda attempt: attempt.tool_calls)


def ended_normally(run: LogicalRunRow) -> bool:
    """True when the scored attempt ended normally, whatever its verdict."""
    return run.scored is not None and run.scored.end is EndKind.NORMAL


def would_have_passed(run: LogicalRunRow) -> bool:
    return run.outcome != "success" and any(attempt.would_have_passed for attempt in run.attempts)


def prompt_tokens(run: LogicalRunRow) -> int | None:
    """Input tokens of every class over every attempt, cached or not; None like `total_tokens`."""
    return _tokens(run, PROMPT_CLASSES)


def cache_read_tokens(run: LogicalRunRow) -> int | None:
    """The input tokens that were read from a cache; None like `total_tokens`."""
    return _tokens(run, frozenset({"read"}))


def _tokens(run: LogicalRunRow, classes: frozenset[str]) -> int | None:
    if run.usd is None or run.outcome in ("invalid", "missing"):
        return None
    return sum(count for attempt in run.attempts for name, count in attempt.tokens.items() if name in classes)


def _over_attempts(run: LogicalRunRow, of: Callable[[AttemptRow], int | None]) -> int | None:
    counts = [of(attempt) for attempt in run.attempts]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None
