"""Make the bundle that `benchmarks.check` times: a rehearsal round of some thousand attempts, published."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from controller.domain.authorization import Caps
from controller.evidence import bundle
from tests.world.recorded_round import STORIES, conducted, inputs, task_entry

REPEATS = 3
ARMS = 2


def make(directory: Path, attempts: int) -> Path:
    """A published round with at least so many attempts, in which the stories of the small one come again and again."""
    told = list(STORIES.values())
    per_story = sum(len(tries) for tries in told) / len(told)
    tasks = -int(-attempts // (per_story * ARMS * REPEATS))
    runs = tasks * ARMS * REPEATS
    caps = Caps(
        logical_runs=runs, attempts=runs * 3, requests=runs * 3 * 60, usd=str(runs * 3), timeout_minutes=runs * 3 * 30
    )
    given = inputs(replicates=REPEATS, given=[task_entry(f"task-{number:05}") for number in range(tasks)])
    given = given.model_copy(update={"plan": given.plan.model_copy(update={"envelope": caps})})
    stories = dict(enumerate(itertools.islice(itertools.cycle(told), runs)))
    found = conducted(directory / "round", stories=stories, caps=caps, given=given)
    return found.publish().path


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{made}\n{(made / bundle.STATEMENTS).read_bytes().count(b'attempt-settled')}\n")
