"""The gates that need no machine, and what a report decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pytest

from controller.adapters.git_patch import GitPatches
from controller.domain.tree import SYMLINK, TreeFile
from controller.domain.tree_stream import HarvestedTree, Special
from controller.errors import InvalidTask, SandboxLost
from controller.ports.pool import ExecResult
from controller.verify import rules, verify
from controller.verify.step import count_cases
from tests.world.local_sandbox import LocalSandbox
from tests.world.tasks import file, sample_bundle

BUNDLE = sample_bundle("python")
CHANGED = {**BUNDLE.base, "ordinals.py": file("x")}


class NoMachine(LocalSandbox):
    """A verdict that is already decided must not trouble the machine."""

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        raise AssertionError(f"the machine was asked to run {argv[0]}")


def failed(harvested: HarvestedTree | str) -> list[str]:
    verdict, _ = verify(NoMachine(), BUNDLE, harvested, GitPatches())
    assert not verdict.passed
    assert tuple(gate.name for gate in verdict.gates) == rules.GATES
    return [gate.name for gate in verdict.gates if not gate.passed and "not run" not in gate.detail]


def with_files(**files: TreeFile) -> HarvestedTree:
    return HarvestedTree(tree={**CHANGED, **files})


@pytest.mark.parametrize(
    ("harvested", "gates"),
    [
        ("tree.jsonl line 3: not strict JSON", ["harvest-complete"]),
        (HarvestedTree(tree=CHANGED, truncated=True), ["harvest-complete"]),
        (HarvestedTree(tree=CHANGED, specials=(Special(path="p", kind="fifo"),)), ["no-specials"]),
        (HarvestedTree(tree=CHANGED, specials=(Special(path="x/.git", kind="nested-git"),)), ["no-specials"]),
        (HarvestedTree(tree={**CHANGED, "l": file("/etc/passwd", SYMLINK)}), ["no-symlink-change"]),
        (HarvestedTree(tree={**CHANGED, "README.md": file("ordinals.py", SYMLINK)}), ["no-symlink-change"]),
        (HarvestedTree(tree={**CHANGED, "tests/test_ordinals.py": file("")}), ["protected-paths"]),
        (HarvestedTree(tree={**CHANGED, "tests/more/x.py": file("")}), ["protected-paths"]),
        (HarvestedTree(tree={**CHANGED, "deep/ConfTest.py": file("")}), ["protected-paths"]),
        (HarvestedTree(tree={p: f for p, f in CHANGED.items() if not p.startswith("tests/")}), ["protected-paths"]),
        (HarvestedTree(tree=BUNDLE.base), ["patch-not-empty"]),
        (HarvestedTree(tree={**BUNDLE.base, "__pycache__/a.pyc": file("x")}), ["patch-not-empty"]),
        (
            HarvestedTree(tree={**BUNDLE.base, "l": file("x", SYMLINK), "conftest.py": file("")}),
            ["no-symlink-change", "protected-paths"],
        ),
    ],
)
def test_a_tree_that_fails_a_gate_is_not_run(harvested: HarvestedTree | str, gates: list[str]) -> None:
    assert failed(harvested) == gates


def report(**changes: object) -> rules.JudgeReport:
    fields: dict[str, object] = {
        "schema_version": "fairtrial.judge/2",
        "applied": True,
        "tree_matches": True,
        "exit_code": 0,
        "passed": ["a", "b"],
        "failed": [],
        "detail": "",
    }
    return rules.parse_report(json.dumps(fields | changes).encode())


@pytest.mark.parametrize(
    ("changes", "cases", "passed"),
    [
        ({}, 2, [True, True]),
        ({}, 3, [True, False]),
        ({"passed": [], "failed": []}, 0, [True, False]),
        ({"failed": ["c"]}, 3, [True, False]),
        ({"tree_matches": False}, 2, [False, False]),
        ({"applied": False, "tree_matches": False, "passed": []}, 2, [False, False]),
    ],
)
def test_every_case_must_pass_on_the_very_tree(changes: dict[str, object], cases: int, passed: list[bool]) -> None:
    assert [gate.passed for gate in rules.machine_gates(report(**changes), cases)] == passed


def test_the_output_is_told_in_fields_when_the_subject_was_run() -> None:
    output = rules.output_of(report(passed=["a"], failed=["b"], exit_code=3), b"what it printed", 2)
    assert output is not None
    assert (output.exit_code, output.cases, output.passed, output.failed) == (3, 2, 1, ("b",))
    assert (output.report_bytes, output.report_digest) == (
        15,
        "sha256:" + hashlib.sha256(b"what it printed").hexdigest(),
    )
    assert rules.output_of(report(applied=False), b"", 2) is None
    assert rules.output_of(report(tree_matches=False), b"", 2) is None


def test_a_report_that_is_none_blames_the_machine() -> None:
    for output in (b"", b"{}", b'{"schema_version":"fairtrial.judge/1"}', b"6 passed"):
        with pytest.raises(SandboxLost, match="no valid report"):
            rules.parse_report(output)


def test_a_malformed_case_file_is_named() -> None:
    for text in ("[]", "{", '{"cases": []}', '{"cases": [{"id": "a"}]}', '{"cases": [1]}'):
        bundle = BUNDLE.model_copy(update={"verifier": {"cases.json": text.encode()}})
        with pytest.raises(InvalidTask, match=r"task ordinals-python: verifier/cases\.json"):
            count_cases(bundle)
