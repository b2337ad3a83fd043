"""The same dataset gives the same bytes, whatever runs it: threads, kernels, hash seeds, chunks, versions of numpy."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from controller.analyse import analyse_bytes, resample
from controller.analyse.resample import label, matrix, matrix_digest
from controller.domain.ids import sha256_digest
from controller.settings import PROJECT
from tests.world.analysis_digests import ROUND, digests

REQUIREMENT = PROJECT / "tests" / "assets" / "second-numpy.txt"


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What this process finds."""
    return digests()


def elsewhere(environment: Mapping[str, str]) -> Any:
    """The digests as a process with other variables in its environment finds them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.world.analysis_digests"],
        env={**os.environ, **environment},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("threads", "kernel", "hash_seed"), [("1", "Sandybridge", "1"), ("4", "Haswell", "2")], ids=["one", "four"]
)
def test_threads_kernels_and_hash_seeds_change_nothing(
    threads: str, kernel: str, hash_seed: str, expected: dict[str, str]
) -> None:
    """Products of matrices run on as many threads as there are, in whatever order and by whatever instructions."""
    counts = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    found = elsewhere({**counts, "OPENBLAS_CORETYPE": kernel, "PYTHONHASHSEED": hash_seed})
    assert found["digests"] == expected


def test_another_numpy_changes_nothing(expected: dict[str, str]) -> None:
    found = elsewhere({"PYTHONPATH": str(second_numpy())})
    assert found["numpy"] != np.__version__
    assert found["digests"] == expected


def second_numpy() -> Path:
    """Where the other numpy lies, installed once by its hash; skips the test with pip's reason where it can't be."""
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    version = hashlib.sha256(REQUIREMENT.read_bytes()).hexdigest()[:16]
    target = PROJECT / ".state" / "second-numpy" / f"{interpreter}-{version}"
    whole = target / "whole"
    if not whole.is_file():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--only-binary", ":all:", "--require-hashes", "--upgrade", "--target", str(target)]
        done = subprocess.run([*pip, "-r", str(REQUIREMENT)], capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"a second numpy can't be installed: {done.stderr.strip().splitlines()[-1]}")
        whole.touch()
    return target


@pytest.mark.parametrize("words", [7, 2**20])
def test_chunks_change_nothing(words: int, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str]) -> None:
    monkeypatch.setattr(resample, "_CHUNK_WORDS", words)
    assert sha256_digest(analyse_bytes(ROUND)[1]) == expected["harness-round"]


def test_the_published_label_gives_the_published_digest() -> None:
    """The matrix drawn again by the generator's definition alone, in plain integers."""
    found = analyse_bytes(ROUND)[0].resampling
    assert found.label == label(found.seed, "harness-round", 60) == (
        f"shake128-mulshift64/v1|{found.seed}|harness-round|T=60|"
    )  # fmt: skip
    digest = hashlib.sha256()
    for row in range(found.resamples):
        raw = hashlib.shake_128(found.label.encode() + row.to_bytes(8, "little")).digest(8 * 60)
        for place in range(0, len(raw), 8):
            digest.update((int.from_bytes(raw[place : place + 8], "little") * 60 >> 64).to_bytes(4, "little"))
    assert found.matrix_digest == f"sha256:{digest.hexdigest()}"


def test_the_vectors_of_the_generator() -> None:
    """Published with `shake128-mulshift64/v1`; `openssl dgst -shake128` agrees with the words."""
    stream = "shake128-mulshift64/v1|round-1|success|"
    assert [f"{word:016x}" for word in resample.words(stream, 0, 4).tolist()] == [
        "71b2f9337baff223", "64ea4e331557164c", "368638069a0d0fda", "15ac72fe095501a3",
    ]  # fmt: skip
    assert f"{int(resample.words(stream, 9_999, 1)[0]):016x}" == "f80beeda1b1de5dc"
    assert matrix(stream, 1, 5)[0, :4].tolist() == [2, 1, 1, 0]
    assert matrix(stream, 1, 100)[0, :4].tolist() == [44, 39, 21, 8]
    starts = {5: "cbaaf662", 20: "258aacef", 100: "3cbd03c5"}
    assert {
        tasks: matrix_digest(matrix(stream, 10_000, tasks)).removeprefix("sha256:")[:8] for tasks in starts
    } == starts
