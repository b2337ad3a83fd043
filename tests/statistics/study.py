"""Worlds whose truth is known, and how often the intervals and tests of the product are right in them.

    python -m tests.statistics.study [DATA_SETS FOR COVERAGE, FOR FALSE CLAIMS]

writes every cell with its binomial standard error. Chance comes from our own generator by label, so a cell is a pure
function of its name and the number of data sets. The figures stand in docs/methodology.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri  # type: ignore[import-untyped]

from controller.analyse.draws import Resampler, ratio_per_success
from controller.analyse.holm import holm_intervals, interval
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import words

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

REPEATS: Final = 3
TASKS: Final = (20, 50, 100)
ARMS: Final = 12
COVERAGE_RESAMPLES: Final = 1_999
FAMILY_RESAMPLES: Final = 9_999
MATRIX_SHARED: Final = 10  # data sets of false claims to one resampling matrix, which takes longer than the rest of one
MONEY: Final = 1e6  # costs become whole millionths of their median, so that sums are exact


@dataclass(frozen=True)
class CostWorld:
    """Two arms. A task's ease is Beta(a, b); the first arm succeeds with that probability, the second with its share.

    That share is `worse`. Half of the variance of log cost belongs to the task, for both arms alike. In a `hard` world
    failures cost twice as much, and a task of ease e costs (2 - e) times as much.
    """

    name: str
    a: float
    b: float
    worse: float
    log_sd: float
    hard: bool = False

    @property
    def difference(self) -> float:
        """The true difference of success rates over the population of tasks."""
        return (1 - self.worse) * self.a / (self.a + self.b)

    @property
    def cost_ratio(self) -> float:
        """The true ratio of cost per success, from the moments of the Beta distribution."""
        mean = self.a / (self.a + self.b)
        square = mean * (self.a + 1) / (self.a + self.b + 1)

        def spend(share: float) -> float:
            return 4 - 2 * (1 + share) * mean + share * square if self.hard else 1.0  # E[(2 - e)(2 - share e)]

        return spend(1.0) / spend(self.worse) * self.worse


COST_WORLDS: Final = (
    CostWorld("success .64 and .59, cost log-sd .8", 1.6, 0.9, 0.59 / 0.64, 0.8),
    CostWorld("success .17 and .14, cost log-sd .8", 0.34, 1.66, 0.14 / 0.17, 0.8),
    CostWorld("success .64 and .59, heavy cost", 1.6, 0.9, 0.59 / 0.64, 1.4, hard=True),
)
# Twelve equal arms: the shape of Beta(a, b), from which each task's ease is drawn.
EQUAL_WORLDS: Final = {"moderate spread": (2.0, 2.0), "wide spread": (0.5, 0.5), "near saturation": (4.0, 0.2)}


class Chance:
    """Uniform, normal and Beta numbers from one labelled stream."""

    def __init__(self, label: str) -> None:
        self._label, self._row = f"study|{label}|", 0

    def uniform(self, *shape: int) -> Floats:
        """Numbers strictly between 0 and 1."""
        drawn = words(self._label, self._row, int(np.prod(shape)))
        self._row += 1
        return ((drawn >> np.uint64(11)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-53

    def normal(self, *shape: int) -> Floats:
        return np.asarray(ndtri(self.uniform(*shape)), dtype=np.float64)

    def ease(self, a: float, b: float, tasks: int) -> Floats:
        """The success probability of every task, Beta(a, b)."""
        return np.asarray(betaincinv(a, b, self.uniform(tasks)), dtype=np.float64)


@dataclass(frozen=True)
class Share:
    """So many of so many data sets."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of

    @property
    def error(self) -> float:
        """The binomial standard error."""
        return sqrt(self.value * (1 - self.value) / self.of)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.error:.3f})"


@dataclass(frozen=True)
class Coverage:
    """How often the 95 % interval of a single pair holds the truth, and how often the cost ratio had no upper end."""

    difference: Share
    cost_ratio: Share
    unbounded: int


def coverage(world: CostWorld, tasks: int, data_sets: int) -> Coverage:
    """Simulate and analyse so many data sets of a world. Every one has a resampling matrix of its own."""
    differences = ratios = unbounded = 0
    for number in range(data_sets):
        chance = Chance(f"{world.name}|{tasks}|{number}")
        (first, our_cost), (second, their_cost) = _two_arms(world, tasks, chance)
        resampler = Resampler.of(f"{number:064x}", tasks, COVERAGE_RESAMPLES)
        ours, theirs, spent, other = resampler.sums([first, second, our_cost, their_cost])
        found = WholeReplicates(ours.limbs[0] - theirs.limbs[0], Fraction(1, REPEATS * tasks))
        _, low, high = interval(found)
        differences += float(low) <= world.difference <= float(high)
        _, low, high = interval(ratio_per_success(spent, ours.limbs[0], other, theirs.limbs[0]))
        ratios += float(low) <= world.cost_ratio <= float(high)
        unbounded += float(high) == float("inf")
    return Coverage(Share(differences, data_sets), Share(ratios, data_sets), unbounded)


def _two_arms(world: CostWorld, tasks: int, chance: Chance) -> Iterator[tuple[list[int], list[int]]]:
    """Successes and cost of every task, arm by arm."""
    ease = chance.ease(world.a, world.b, tasks)
    spread = world.log_sd / sqrt(2)
    factor = np.exp(spread * chance.normal(tasks)) * ((2 - ease) if world.hard else 1.0)
    for share in (1.0, world.worse):
        passed = chance.uniform(tasks, REPEATS) < (share * ease)[:, None]
        cost = factor[:, None] * np.exp(spread * chance.normal(tasks, REPEATS))
        if world.hard:
            cost = cost * np.where(passed, 1.0, 2.0)
        yield passed.sum(axis=1).tolist(), np.rint(cost.sum(axis=1) * MONEY).astype(np.int64).tolist()


def false_claims(a: float, b: float, tasks: int, data_sets: int) -> Share:
    """How often Holm's rule finds a difference in success among twelve equal arms, 66 pairs: always wrongly."""
    wrong = 0
    for number in range(data_sets):
        chance = Chance(f"equal|{a}|{b}|{tasks}|{number}")
        ease = chance.ease(a, b, tasks)
        passed = (chance.uniform(ARMS, tasks, REPEATS) < ease[None, :, None]).sum(axis=2)
        if number % MATRIX_SHARED == 0:
            resampler = Resampler.of(f"{number:064x}", tasks, FAMILY_RESAMPLES)
        sums = [one.limbs[0] for one in resampler.sums(passed.tolist())]
        family = [
            WholeReplicates(sums[one] - sums[other], Fraction(1, REPEATS * tasks))
            for one in range(ARMS)
            for other in range(one + 1, ARMS)
        ]
        wrong += any(one.rejected for one in holm_intervals(family, resamples=FAMILY_RESAMPLES, null=Fraction(0)))
    return Share(wrong, data_sets)


def main(covering: int = 2_000, claiming: int = 300) -> None:
    for world in COST_WORLDS:
        for tasks in TASKS:
            found = coverage(world, tasks, covering)
            sys.stdout.write(
                f"{world.name:40} T={tasks:3} difference {found.difference} cost ratio {found.cost_ratio} "
                f"unbounded {found.unbounded}\n"
            )
            sys.stdout.flush()
    for name, shape in EQUAL_WORLDS.items():
        for tasks in TASKS:
            sys.stdout.write(f"{name:40} T={tasks:3} false claims {false_claims(*shape, tasks, claiming)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
