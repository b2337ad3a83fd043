"""The starter corpus with its real packages: qualified, and rehearsed by hand. Fetches six small releases once."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import verify
from controller.adapters.corpus_fs import load_task
from controller.adapters.git_patch import GitPatches
from controller.adapters.task_sources import TaskSources
from controller.domain.task import TaskBundle
from controller.domain.tree import EXECUTABLE, REGULAR, TreeFile
from controller.domain.tree_stream import HarvestedTree
from controller.verify.step import JudgeSite
from tests.world.local_sandbox import LocalSandbox, judge_site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="the judge gives the subject a user of its own, as root"),
]

ROOT = Path(__file__).parents[2]
SOURCES = TaskSources(ROOT / ".state" / "sources")
TASKS = sorted(path.name for path in (ROOT / "corpus").iterdir() if path.is_dir())
PATCHES = GitPatches()


@pytest.fixture
def site() -> Iterator[JudgeSite]:
    with judge_site() as made:
        yield made


@pytest.mark.parametrize("name", TASKS)
def test_gold_passes_three_times_and_the_bare_base_fails_three_times(name: str, site: JudgeSite) -> None:
    found = verify.qualify(LocalSandbox(), load_task(ROOT / "corpus" / name, SOURCES), PATCHES, site=site)
    assert (found.gold_passed, found.empty_failed, found.faults) == (3, 3, ())
    assert len(found.failing_cases) < found.cases  # some cases guard what works already


@pytest.mark.parametrize("name", TASKS)
def test_the_passing_rehearsal_passes_and_the_others_do_not(name: str, site: JudgeSite, tmp_path: Path) -> None:
    bundle = load_task(ROOT / "corpus" / name, SOURCES)
    assert bundle.rehearsal_json is not None
    passed = {}
    for variant, steps in json.loads(bundle.rehearsal_json)["variants"].items():
        tree = play(bundle, [step["run"] for step in steps if "run" in step], tmp_path / variant)
        verdict, _ = verify.verify(LocalSandbox(), bundle, HarvestedTree(tree=tree), PATCHES, site=site)
        passed[variant] = verdict.passed
    assert passed == {variant: variant == "pass" for variant in passed}


def play(bundle: TaskBundle, commands: list[str], workspace: Path) -> dict[str, TreeFile]:
    """What the workspace holds after the commands, each of which must succeed."""
    with tarfile.open(fileobj=io.BytesIO(PATCHES.base_commit_tar(bundle.base))) as tar:
        tar.extractall(workspace, filter="data")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(workspace / ".git"), "GIT_PAGER": "cat"}
    for command in commands:
        subprocess.run(["/bin/bash", "-c", command], cwd=workspace, env=env, check=True, capture_output=True)
    files = {path.relative_to(workspace).as_posix(): path for path in workspace.rglob("*") if path.is_file()}
    return {
        name: TreeFile(mode=EXECUTABLE if path.stat().st_mode & 0o100 else REGULAR, data=path.read_bytes())
        for name, path in files.items()
        if not name.startswith(".git/")
    }
