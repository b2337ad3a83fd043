"""The check's benchmark: it makes as many attempts as it says, and measures both checkers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.check import SUBJECTS, _measured, check


def test_both_checkers_are_measured_on_a_bundle_of_at_least_so_many_attempts() -> None:
    found = check(attempts=20)
    assert (
        found["attempts"] == 26
    )  # three tasks of six runs: twelve attempts in each eight of them, one in each of the last two
    for subject in SUBJECTS:
        measured = found[subject]
        assert isinstance(measured, dict) and set(measured) == {"wall_s", "cpu_s", "peak_mb"}
        assert 10 < measured["peak_mb"] < 1_000


def test_a_refusal_is_no_figure() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        _measured([sys.executable, "-c", "raise SystemExit(1)"])
