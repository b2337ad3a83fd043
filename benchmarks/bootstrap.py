"""The engine's bootstrap beside scipy's and arch's: the same statistics, each subject in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bootstrap_subjects import RESAMPLES, STATISTICS

_GOES = {"ours": 5, "scipy": 1, "scipy_vectorised": 3, "arch": 1}  # the least counts; a rival's goes take long
# One thread for every subject: on a busy machine a second one of BLAS mostly spins, and CPU time would count that.
# What else tunes BLAS in the caller's environment is left out, so that it picks its kernels itself.
_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
_TUNED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def bootstrap() -> dict[str, object]:
    """258 statistics of 12 arms at 10,000 resamples, on 100 tasks against scipy and arch, and on 1,000 alone.

    Seconds are the least of some goes, and ratios are of CPU time, which a busy machine changes less than wall time.
    """
    found = {subject: _measured(subject, 100, goes) for subject, goes in _GOES.items()}
    large = _measured("ours", 1_000, 3)
    cpu = {subject: one["cpu_s"] for subject, one in found.items()}
    return {
        "statistics": STATISTICS,
        "resamples": RESAMPLES,
        "tasks_100": found,
        "goal_tasks_100": "ours <= 0.25 s, and >= 8 times faster than scipy",
        "times_faster_than": {rival: round(cpu[rival] / cpu["ours"], 1) for rival in cpu if rival != "ours"},
        "tasks_1000": {"ours": large},
        "goal_tasks_1000": "<= 2 s, peak under 700 MB",
        "load_average": [round(load, 1) for load in os.getloadavg()],
    }


def environment_of(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a subject."""
    return {name: value for name, value in given.items() if name not in _TUNED} | _THREADS


def _measured(subject: str, tasks: int, goes: int) -> dict[str, float]:
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.bootstrap_subjects", subject, str(tasks), str(goes)],
        cwd=Path(__file__).parents[1],
        env=environment_of(os.environ),
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    ).stdout
    found: dict[str, float] = json.loads(said)
    return found
