"""The bootstrap's benchmark: every subject computes the statistics that the goals speak of, and the same ones."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import bootstrap_subjects
from benchmarks.bootstrap import environment_of
from benchmarks.bootstrap_subjects import ARMS, STATISTICS, SUBJECTS, data_of, measure, statistics_of


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_gives_all_statistics(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap_subjects, "RESAMPLES", 100)
    found = measure(subject, 12, 1)
    assert set(found) == {"wall_s", "cpu_s", "peak_mb"}


def test_the_function_of_one_resample_and_of_many_agree() -> None:
    data = data_of(12)
    drawn = np.random.default_rng(1).integers(0, 12, size=(5, 12))
    many = statistics_of(data, drawn)
    assert many.shape == (STATISTICS, 5)
    for place in range(5):
        np.testing.assert_array_equal(many[:, place], statistics_of(data, drawn[place]))


def test_the_statistics_are_those_of_the_definition() -> None:
    data = data_of(12)
    found = statistics_of(data, np.arange(12))
    wins, times = data.successes.sum(axis=0), data.times.transpose(1, 0, 2).reshape(ARMS, 36)
    assert found[0] == wins[0] / 36
    assert found[ARMS] == data.cost[:, 0].sum() / wins[0]
    assert found[3 * ARMS] == sorted(times[0])[17] and found[4 * ARMS] == sorted(times[0])[32]  # ceil(q * 36) - 1
    assert found[5 * ARMS] == wins[0] / 36 - wins[1] / 36


def test_a_subject_tunes_no_kernels_and_has_one_thread() -> None:
    given = {"PATH": "/bin", "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "1", "OPENBLAS_NUM_THREADS": "8"}
    assert environment_of(given) == {"PATH": "/bin", "OPENBLAS_NUM_THREADS": "1"}
