"""No mutation of a good bundle is accepted, whoever made it, and the step that refuses it has a name."""

from __future__ import annotations

import pytest

from controller.evidence.check import STEPS
from tests.unit.offline.test_agreement import full_step, offline_step
from tests.world.bundle_mutations import MUTATORS, Survey, good_bundles, mutations, survey

SOME, MANY = 480, 10_000
NAMES = {f"{number} {name}" for number, (name, _) in enumerate(STEPS, start=1)}


def _holds(found: Survey, count: int) -> None:
    assert (found.tried, found.accepted) == (count, [])
    assert found.steps.keys() == {mutator.__name__ for mutator in MUTATORS}
    seen = [step for counts in found.steps.values() for step in counts]
    assert set(seen) <= NAMES
    assert sum(counts.total() for counts in found.steps.values()) == count


def test_no_mutation_is_accepted() -> None:
    _holds(survey(good_bundles(), SOME, seed=20261201), SOME)


@pytest.mark.slow
def test_none_of_many_mutations_is_accepted() -> None:
    _holds(survey(good_bundles(), MANY, seed=1), MANY)


@pytest.mark.slow
def test_the_other_checker_refuses_the_same_at_the_same_step() -> None:
    good = {name: files for name, files in good_bundles().items() if name.startswith("harness-round")}
    differing = []
    for number, (name, kind, files) in enumerate(mutations(good, 1_000, seed=3)):
        if (steps := (offline_step(files), full_step(files)))[0] != steps[1]:
            differing.append((number, kind, name, steps))
    assert differing == []
