"""The time of a whole analysis."""

from __future__ import annotations

import statistics

from benchmarks.timing import seconds
from controller.analyse import analyse_bytes
from tests.world.rounds import jsonl, realistic


def analysis() -> dict[str, object]:
    """The whole analysis of 12 arms, 100 tasks, 3 repeats and 10,000 resamples."""
    data = jsonl(realistic([f"task-{i:03}" for i in range(100)], [f"arm-{i:02}" for i in range(12)]))
    times = [seconds(lambda: analyse_bytes(data)) for _ in range(3)]
    return {"median_s": round(statistics.median(times), 2)}
