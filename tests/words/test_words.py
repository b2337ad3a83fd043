"""Promises that only a test keeps: unique exit codes, a remedy for every error, a README whose commands exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from controller import errors
from controller.errors import FairtrialError

ROOT = Path(__file__).parents[2]


def every_error(kind: type[FairtrialError] = FairtrialError) -> Iterator[type[FairtrialError]]:
    for child in kind.__subclasses__():
        yield child
        yield from every_error(child)


def concrete() -> list[type[FairtrialError]]:
    return [kind for kind in every_error() if "exit_code" in vars(kind)]


def test_every_exit_code_belongs_to_one_error() -> None:
    codes = [kind.exit_code for kind in concrete()]
    assert len(codes) == len(set(codes)) >= 25
    assert all(64 <= code <= 113 for code in codes), "codes below 64 belong to the shell"


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    assert errors.__doc__ is not None
    missing = [
        kind.__name__ for kind in concrete() if not re.search(rf"{kind.__name__}\s+{kind.exit_code}\b", errors.__doc__)
    ]
    assert not missing


def test_every_error_says_what_to_do_next() -> None:
    for kind in concrete():
        assert len(kind.remedy) > 20, kind.__name__


def test_the_readme_names_only_verbs_that_exist() -> None:
    from typer.main import get_command

    from controller.cli.verbs import app

    known = set(getattr(get_command(app), "commands", {}))
    texts = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {verb for text in texts for verb in re.findall(r"(?:`|bin/)fairtrial ([a-z]+)", text.read_text())}
    assert len(named) > 10
    assert named <= known, named - known


def test_every_test_file_is_collected() -> None:
    stray = [
        path.name
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"^(async )?def test_", path.read_text(), re.MULTILINE) and not path.name.startswith("test_")
    ]
    assert not stray


def test_no_module_is_long_and_no_line_is_left_undone() -> None:
    unfinished = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
    for path in [*(ROOT / "controller").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text()
        assert text.count("\n") <= 600, f"{path} is too long"
        assert not unfinished.search(text), path
