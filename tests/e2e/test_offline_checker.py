"""The checker in one file, on every Python that this machine has: nothing installed, no environment, no network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world.recorded_round import conducted

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 10
OLDEST, NEWEST = (3, 9), (3, 14)


def interpreters() -> Iterator[Path]:
    """Each version from 3.9 to 3.14 once, from the search path and from pyenv."""
    places = [Path(place) for place in os.environ.get("PATH", "").split(os.pathsep)]
    places += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    seen = {sys.version_info[:2]}
    yield Path(sys.executable)
    for place in places:
        for path in sorted(place.glob("python3*")) if "shims" not in place.parts and place.is_dir() else ():
            if re.fullmatch(r"python3(\.\d+)?", path.name) is None:
                continue
            told = subprocess.run(
                [path, "-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
            )
            if told.returncode != 0:
                continue
            major, minor = map(int, told.stdout.split())
            version = (major, minor)
            if OLDEST <= version <= NEWEST and version not in seen:
                seen.add(version)
                yield path


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checker") / "fairtrial-check.pyz"
    subprocess.run([sys.executable, ROOT / "tools" / "checker.py", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("rounds")
    return conducted(directory / "small").publish().path


def alone(python: Path, checker: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Isolated, without site packages, with an empty environment, and without a network where that can be had."""
    command = [str(python), "-I", "-S", str(checker), *arguments]
    unshare = shutil.which("unshare")
    if unshare and subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode == 0:
        command = [unshare, "-rn", *command]
    return subprocess.run(command, env={}, cwd="/", capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def expected(checker: Path, bundle: Path) -> str:
    """What this Python says of the good bundle; every other one says the same."""
    return alone(Path(sys.executable), checker, str(bundle), "--key", str(bundle / "keys.json"), "--json").stdout


@pytest.mark.parametrize("python", [*interpreters()], ids=str)
def test_every_python_accepts_the_good_bundle_and_refuses_a_bad_one(
    python: Path, checker: Path, bundle: Path, expected: str, tmp_path: Path
) -> None:
    started = time.monotonic()
    found = alone(python, checker, str(bundle), "--key", str(bundle / "keys.json"), "--json")
    assert (found.returncode, found.stderr) == (0, "")
    assert time.monotonic() - started < SECONDS_MAX
    assert json.loads(found.stdout)["passed"]
    assert found.stdout == expected
    shutil.copytree(bundle, tmp_path / "bad")
    dataset = tmp_path / "bad" / "dataset.jsonl"
    dataset.write_bytes(dataset.read_bytes().replace(b'"failure"', b'"success"', 1))
    refused = alone(python, checker, str(tmp_path / "bad"))
    assert (refused.returncode, refused.stderr) == (1, "")
    assert refused.stdout.startswith("NO   1 index: dataset.jsonl has other bytes")
    assert alone(python, checker, "/absent").returncode == 2
