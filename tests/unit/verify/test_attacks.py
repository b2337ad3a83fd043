"""No attack of the table passes, with the protected paths lifted so that the judge alone must hold; gold passes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import verify
from controller.adapters.git_patch import GitPatches
from controller.domain.outcome import Verdict
from controller.domain.task import TaskBundle
from controller.domain.tree import TreeFile
from controller.domain.tree_stream import HarvestedTree
from controller.verify.step import JudgeSite
from tests.world.attacks import Overlay, node_attacks, python_attacks
from tests.world.local_sandbox import LocalSandbox, judge_site
from tests.world.tasks import Language, file, sample_bundle

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the judge gives the subject a user of its own, as root")

PATCHES = GitPatches()
PYTHON, NODE = python_attacks(), node_attacks()


@pytest.fixture
def site() -> Iterator[JudgeSite]:
    with judge_site() as made:
        yield made


def overlaid(bundle: TaskBundle, overlay: Overlay) -> dict[str, TreeFile]:
    return {**bundle.base, **{path: file(text) for path, text in overlay.items()}}


def judged(language: Language, overlay: Overlay, site: JudgeSite) -> Verdict:
    bundle = sample_bundle(language, verify_seconds=2).model_copy(update={"protected": ()})
    harvested = HarvestedTree(tree=overlaid(bundle, overlay))
    verdict, _ = verify.verify(LocalSandbox(), bundle, harvested, PATCHES, site=site)
    return verdict


@pytest.mark.parametrize("name", PYTHON)
def test_no_python_attack_passes(name: str, site: JudgeSite) -> None:
    verdict = judged("python", PYTHON[name], site)
    assert not verdict.passed
    assert [gate.name for gate in verdict.gates if not gate.passed] == ["hidden-verifier"]  # it was really run
    assert user_processes(site.uid) == []


@pytest.mark.parametrize("name", NODE)
def test_no_node_attack_passes(name: str, site: JudgeSite) -> None:
    verdict = judged("node", NODE[name], site)
    assert not verdict.passed
    assert [gate.name for gate in verdict.gates if not gate.passed] == ["hidden-verifier"]
    assert user_processes(site.uid) == []


@pytest.mark.parametrize("language", ["python", "node"])
def test_the_gold_patch_passes_and_the_bare_base_fails(language: Language, site: JudgeSite) -> None:
    found = verify.qualify(LocalSandbox(), sample_bundle(language), PATCHES, site=site)
    assert (found.gold_passed, found.empty_failed, found.faults) == (3, 3, ())
    assert found.failing_cases == ("suffix-2", "suffix-3")


def test_byte_code_in_the_tree_is_not_run(site: JudgeSite, tmp_path: Path) -> None:
    bundle = sample_bundle("python")
    right = PATCHES.apply_check(bundle.base, bundle.gold_patch)["ordinals.py"].data
    source = tmp_path / "ordinals.py"
    source.write_bytes(right)
    code = "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], invalidation_mode="
    code += "py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    target = tmp_path / "ordinals.pyc"
    subprocess.run(["/usr/bin/python3", "-c", code, str(source), str(target)], check=True)
    tag = subprocess.check_output(
        ["/usr/bin/python3", "-c", "import sys; print(sys.implementation.cache_tag)"], text=True
    )
    swapped = f"__pycache__/ordinals.{tag.strip()}.pyc"
    base = {**bundle.base, swapped: file(b"old")}  # in the base, so that the by-product rule does not remove it
    tree = {**base, swapped: file(target.read_bytes())}
    verdict, _ = verify.verify(
        LocalSandbox(), bundle.model_copy(update={"base": base}), HarvestedTree(tree=tree), PATCHES, site=site
    )
    assert not verdict.passed
    assert verdict.gates[-1].detail.startswith("4 of 6 hidden cases passed")


def test_cases_that_were_right_stay_told_apart(site: JudgeSite) -> None:
    """A type-exact answer: a true where 0.5 is expected fails that case alone."""
    verdict = judged("python", PYTHON["bool-for-number"], site)
    assert verdict.gates[-1].detail == "3 of 6 hidden cases passed; failed: suffix-2, suffix-3, half-5"


def user_processes(uid: int) -> list[int]:
    """Processes of the user that are not zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            if f"\nUid:\t{uid}\t" in status and "\nState:\tZ" not in status:
                found.append(int(entry.name))
    return found
