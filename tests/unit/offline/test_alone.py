"""The checker stands alone: the standard library of Python 3.9, one small file, the same bytes every time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.offline.examination import STEPS

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "controller" / "offline").glob("*.py"))
# Of the standard library: no network, no processes, no clock, no chance.
ALLOWED = {
    "__future__", "argparse", "array", "base64", "binascii", "bisect", "collections", "dataclasses", "decimal",
    "fractions", "functools", "hashlib", "itertools", "json", "os", "pathlib", "re", "stat", "statistics", "struct",
    "sys", "typing",
}  # fmt: skip


def imports(source: str) -> Iterator[tuple[int, str]]:
    """The level and the first name of every import, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, (node.module or "").partition(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_it_imports_itself_and_the_standard_library_only(path: Path) -> None:
    for level, name in imports(path.read_text()):
        assert level == 1 or (level == 0 and name in ALLOWED), f"{path.name} imports {name}"
    assert set(sys.stdlib_module_names) >= ALLOWED - {"__future__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_it_is_written_in_the_syntax_of_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))


def test_the_archive_is_small_and_the_same_when_built_twice(tmp_path: Path) -> None:
    targets = tmp_path / "a.pyz", tmp_path / "deeper" / "b.pyz"
    for target in targets:
        subprocess.run([sys.executable, ROOT / "tools" / "checker.py", target], check=True, capture_output=True)
    first, second = (target.read_bytes() for target in targets)
    assert first == second
    assert len(first) < 2**20


def test_the_guide_names_the_checker_its_steps_and_its_exit_codes() -> None:
    guide = (ROOT / "docs" / "evidence.md").read_text()
    assert "fairtrial-check.pyz BUNDLE [--key keys.json] [--json]" in guide
    assert all(f"{number}. **{name}" in guide.lower() for number, (name, _) in enumerate(STEPS, start=1))
