"""The check of a bundle of 10,000 attempts, by both checkers, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from controller.evidence.bundle import KEYS

ATTEMPTS = 10_000
SUBJECTS = {"fairtrial check": ("controller.cli", "check"), "stand-alone checker": ("controller.offline",)}
_ROOT = Path(__file__).parents[1]


def check(attempts: int = ATTEMPTS) -> dict[str, object]:
    """Wall time, CPU time and peak of resident memory, reading included, of a bundle that both must accept.

    The bundle is made by another process, since a child's peak begins with its parent's memory.
    """
    with tempfile.TemporaryDirectory() as directory:
        maker = [sys.executable, "-m", "benchmarks.check_bundle", directory, str(attempts)]
        said = subprocess.run(maker, cwd=_ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
        made, count = said.splitlines()
        bundle = Path(made)
        keys = ["--key", str(bundle / KEYS)]
        found: dict[str, object] = {
            "attempts": int(count),
            "bundle_mb": round(sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()) / 1e6),
        }
        for subject, command in SUBJECTS.items():
            found[subject] = _measured([sys.executable, "-m", *command, made, *keys])
    return found | {
        "goal": "fairtrial check < 60 s, peak < 1,000 MB",
        "load_average": [round(load, 1) for load in os.getloadavg()],
    }


def _measured(argv: Sequence[str]) -> dict[str, float]:
    """Of a process that must end with 0."""
    before = time.perf_counter()
    process = subprocess.Popen(argv, cwd=_ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return {
        "wall_s": round(wall, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss * 1024 / 1e6),
    }
