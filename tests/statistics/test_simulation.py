"""Does the method keep its promises where the truth is known, and does it fail only as far as is published?

The expected figures are those of an independent simulation, 2,000 data sets for coverage and 600 for false claims. The
tolerance is four binomial errors of both studies together. A fixed label for every data set: the answer never varies.
"""

from __future__ import annotations

from math import sqrt

import pytest

from tests.statistics.study import COST_WORLDS, EQUAL_WORLDS, TASKS, Chance, CostWorld, Share, coverage, false_claims

COVERING, CLAIMING = 400, 200
# By world: coverage at 20, 50 and 100 tasks of the success difference, and of the cost ratio.
COVERED = {
    "success .64 and .59, cost log-sd .8": ((0.930, 0.928, 0.947), (0.926, 0.933, 0.942)),
    "success .17 and .14, cost log-sd .8": ((0.919, 0.932, 0.941), (0.921, 0.936, 0.948)),
    "success .64 and .59, heavy cost": ((0.930, 0.928, 0.947), (0.915, 0.929, 0.929)),
}
CLAIMED = {
    "moderate spread": (0.130, 0.043, 0.033),
    "wide spread": (0.217, 0.063, 0.042),
    "near saturation": (0.032, 0.105, 0.045),
}


def agrees(found: Share, expected: float, of: int) -> bool:
    error = sqrt(expected * (1 - expected) * (1 / of + 1 / found.of))
    return abs(found.value - expected) <= 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("tasks", TASKS)
@pytest.mark.parametrize("world", COST_WORLDS, ids=lambda world: world.name)
def test_a_single_interval_covers_nearly_as_often_as_it_says(world: CostWorld, tasks: int) -> None:
    found = coverage(world, tasks, COVERING)
    difference, cost_ratio = (figures[TASKS.index(tasks)] for figures in COVERED[world.name])
    assert agrees(found.difference, difference, 2_000), found
    assert agrees(found.cost_ratio, cost_ratio, 2_000), found


@pytest.mark.slow
@pytest.mark.parametrize("tasks", TASKS)
@pytest.mark.parametrize("world", EQUAL_WORLDS)
def test_equal_arms_are_told_apart_as_rarely_as_published(world: str, tasks: int) -> None:
    """Twelve equal arms and 66 pairs. From 100 tasks on, a wrong claim in at most about 5 % of rounds."""
    found = false_claims(*EQUAL_WORLDS[world], tasks, CLAIMING)
    assert agrees(found, CLAIMED[world][TASKS.index(tasks)], 600), found
    if tasks == 100:
        assert found.value <= 0.05 + 4 * sqrt(0.05 * 0.95 / CLAIMING)


def test_the_study_itself_is_deterministic_and_its_chance_is_fair() -> None:
    """The mean of Beta(1.6, 0.9) is .64; the interval is four standard errors of 40,000 uniform numbers."""
    chance = Chance("fair")
    assert abs(float(chance.uniform(200, 200).mean()) - 0.5) <= 4 / sqrt(12 * 40_000)
    assert abs(float(chance.ease(1.6, 0.9, 20_000).mean()) - 0.64) <= 4 * sqrt(0.64 * 0.36 / 3.5 / 20_000)
    assert coverage(COST_WORLDS[0], 20, 3) == coverage(COST_WORLDS[0], 20, 3)
    assert COST_WORLDS[0].difference == pytest.approx(0.05)
    assert COST_WORLDS[1].cost_ratio == pytest.approx(14 / 17)


def test_the_true_cost_ratio_of_the_heavy_world() -> None:
    """E[(2 - e)(2 - s e)] by a sum over a fine grid, for ease that is uniform: Beta(1, 1)."""
    world = CostWorld("uniform", 1, 1, 0.5, 1.0, hard=True)
    grid = [(place + 0.5) / 1_000 for place in range(1_000)]
    spend = [sum((2 - e) * (2 - share * e) for e in grid) / 1_000 for share in (1.0, 0.5)]
    assert world.cost_ratio == pytest.approx(spend[0] / spend[1] * 0.5, rel=1e-5)
