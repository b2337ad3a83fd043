"""What a planned round could find, by the normal approximation. The formulas are stated in docs/methodology.md.

Sizes are shares (0.03 is three percentage points) and natural logarithms of ratios. Levels are two-sided.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, log1p, sqrt
from typing import Final

from controller.analyse.holm import ALPHA, tail_rank
from controller.analyse.normal import below, critical, detectable_factor
from controller.protocols.optimizer_matrix.gates import funded_gate

TASKS_NEEDED_MAX: Final = 10**9  # beyond it a number of tasks tells nobody anything


def detectable(spread: float, tasks: int, level: Fraction = ALPHA) -> float:
    """The true difference that 80 % of rounds tell from zero."""
    return float(detectable_factor(level)) * spread / sqrt(tasks)


def tasks_for_shift(spread: float, shift: float, level: Fraction = ALPHA) -> int | None:
    """How many tasks put an interval beyond a point that lies this far from the truth, in 80 % of rounds.

    The success lower bound of one of two equal arms has the margin as its shift. None when no number of tasks does, or
    only an absurd one.
    """
    if shift <= 0:
        return None
    tasks = (float(detectable_factor(level)) * spread / shift) ** 2
    return max(2, ceil(tasks)) if tasks <= TASKS_NEEDED_MAX else None


def tasks_for_saving(log_spread: float, saving: Fraction, level: Fraction = ALPHA) -> int | None:
    """How many tasks put the ratio's interval below 1 when the true saving is this share."""
    return tasks_for_shift(log_spread, -log1p(-float(saving)), level)


def lead_needed(spread: float, tasks: int, margin: float, level: Fraction = ALPHA) -> float:
    """The observed lead from which on the success lower bound is above minus the margin; negative: it may trail."""
    return float(critical(level)) * spread / sqrt(tasks) - margin


@dataclass(frozen=True, slots=True)
class Truth:
    """An assumed truth about one pair, and the spreads of its per-task values.

    The first arm's success rate is ahead by `lead`; its cost and its time are lower by the savings, as shares.
    """

    spread: float
    cost_log_spread: float
    time_log_spread: float | None
    lead: float = 0.0
    cost_saving: Fraction = Fraction(0)
    time_saving: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Chances:
    """How probable each conclusion about one pair is."""

    success: float  # either arm is called more successful
    cost: float  # the first arm is called more efficient by cost
    time: float | None  # by time; None when the spread of times is not assumed


def chances(truth: Truth, tasks: int, *, margin: float, saving: Fraction, level: Fraction = ALPHA) -> Chances:
    """The rules of harness-round on normal estimates that are independent of one another."""
    z = float(critical(level))
    error = truth.spread / sqrt(tasks)
    reach = z * error
    success = below((-reach - truth.lead) / error) + 1 - below((reach - truth.lead) / error)
    tie = tie_chance(truth.spread, tasks, margin, level, lead=truth.lead)
    asked = log1p(-float(saving))
    cheaper, dearer = _ratio_chances(truth.cost_log_spread / sqrt(tasks), truth.cost_saving, z, asked)
    time = None
    if truth.time_log_spread is not None:
        faster, _ = _ratio_chances(truth.time_log_spread / sqrt(tasks), truth.time_saving, z, asked)
        time = tie * (1 - cheaper - dearer) * faster
    return Chances(success=success, cost=tie * cheaper, time=time)


def tie_chance(spread: float, tasks: int, margin: float, level: Fraction = ALPHA, *, lead: float = 0.0) -> float:
    """How probable it is that success ties within the margin for an arm that truly leads by so much."""
    error = spread / sqrt(tasks)
    reach = float(critical(level)) * error
    return max(0.0, below((reach - lead) / error) - below((max(-reach, reach - margin) - lead) / error))


def _ratio_chances(error: float, saving: Fraction, z: float, asked: float) -> tuple[float, float]:
    """How probable it is that the first, and that the second, meets the saving-and-interval rule."""
    centre, bound = log1p(-float(saving)), min(asked, -z * error)
    return below((bound - centre) / error), 1 - below((-bound - centre) / error)


def successful_tasks_min(tasks: int, resamples: int, level: Fraction = ALPHA) -> int | None:
    """How many tasks need a success so that a cost ratio's interval is expected to be bounded; None: none would do.

    A resample misses all s of T tasks with probability (1 - s/T)^T; at most k - 1 of them may.
    """
    k = tail_rank(resamples, level)
    if k == 0:
        return None
    allowed = (k - 1) * tasks**tasks
    return 1 + bisect_left(range(1, tasks), True, key=lambda s: resamples * (tasks - s) ** tasks <= allowed)


def spread_of_rate(rate: float, repeats: int) -> float:
    """The spread of per-task differences when every task has the same success rate under both arms.

    Tasks that are easier or harder for both arms alike make it smaller.
    """
    return sqrt(2 * rate * (1 - rate) / repeats)


@dataclass(frozen=True, slots=True)
class GateChances:
    """How probable it is that a policy passes the success gates of optimizer-matrix; exact."""

    absolute: Fraction
    relative_to_equal: Fraction  # against another policy of the same true rate


def gate_chances(rate: Fraction, cells: int) -> GateChances:
    """Independent cells, the same true rate everywhere."""
    ways = [comb(cells, hits) * rate**hits * (1 - rate) ** (cells - hits) for hits in range(cells + 1)]

    def gates(own: int, frontier: int) -> tuple[bool, bool]:
        found = funded_gate(own, frontier, cells, adaptive_cost=None, frontier_cost=None)
        return found.absolute_80, found.relative_95

    absolute = sum((ways[own] for own in range(cells + 1) if gates(own, 0)[0]), Fraction(0))
    relative = sum(
        (ways[own] * ways[other] for own in range(cells + 1) for other in range(cells + 1) if gates(own, other)[1]),
        Fraction(0),
    )
    return GateChances(absolute, relative)


def unbounded_chance(rate: Fraction, instances: int, resamples: int, rank: int) -> Fraction:
    """How probable it is that a cost per success of cost-index is expected to have no upper end.

    It has none when the value at that rank is infinite: when more than `resamples - rank` replicates hold no success.
    """
    total = Fraction(0)
    for hits in range(instances + 1):
        if resamples * (instances - hits) ** instances > (resamples - rank) * instances**instances:
            total += comb(instances, hits) * rate**hits * (1 - rate) ** (instances - hits)
    return total
