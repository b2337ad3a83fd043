"""Two small tasks made of constants, one for each language: no registry, no disk."""

from __future__ import annotations

import functools
import json
from typing import Any, Final, Literal

from controller.adapters.git_patch import GitPatches
from controller.domain.ids import sha256_digest
from controller.domain.plan import TaskEntry
from controller.domain.task import TaskBundle
from controller.domain.tree import EXECUTABLE, REGULAR, TreeFile, tree_digest

Language = Literal["python", "node"]

PYTHON_RIGHT: Final = '''
def suffix(number):
    """The ordinal suffix of a number."""
    number = abs(int(number))
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def half(number):
    return number / 2
'''.lstrip()
PYTHON_WRONG: Final = PYTHON_RIGHT.replace("number % 100 in", "number in")

NODE_RIGHT: Final = """
'use strict';
exports.suffix = (number) => {
  const size = Math.abs(number);
  if ([11, 12, 13].includes(size % 100)) return 'th';
  return { 1: 'st', 2: 'nd', 3: 'rd' }[size % 10] || 'th';
};
exports.half = (number) => number / 2;
""".lstrip()
NODE_WRONG: Final = NODE_RIGHT.replace("includes(size % 100)", "includes(size)")

PYTHON_DRIVER: Final = b"""
import sys


def prepare(repository):
    sys.path.insert(0, repository)
    import ordinals

    return ordinals


def answer(ordinals, given):
    return getattr(ordinals, given["call"])(given["with"])
"""
NODE_DRIVER: Final = b"""
import { createRequire } from 'node:module';

export function prepare(repository) {
  return createRequire(`${repository}/`)(`${repository}/ordinals.js`);
}

export function answer(ordinals, given) {
  return ordinals[given.call](given.with);
}
"""

CASES: Final[tuple[tuple[str, int, Any], ...]] = (
    ("suffix", 1, "st"),
    ("suffix", 12, "th"),
    ("suffix", 112, "th"),
    ("suffix", -1013, "th"),
    ("suffix", 23, "rd"),
    ("half", 1, 0.5),
)
SOURCE_FILE: Final[dict[Language, str]] = {"python": "ordinals.py", "node": "ordinals.js"}
PROTECTED: Final = ("tests/**", "**/conftest.py", "package.json", "**/.npmrc", "pyproject.toml")


def file(text: str | bytes, mode: str = REGULAR) -> TreeFile:
    """A file of a tree."""
    return TreeFile(mode=mode, data=text.encode() if isinstance(text, str) else text)


@functools.cache
def sample_bundle(language: Language, *, verify_seconds: int = 20) -> TaskBundle:
    """The task with its bug in; its gold patch repairs it."""
    wrong, right = {"python": (PYTHON_WRONG, PYTHON_RIGHT), "node": (NODE_WRONG, NODE_RIGHT)}[language]
    source = SOURCE_FILE[language]
    base = {
        source: file(wrong),
        "README.md": file("Ordinals.\n"),
        "tools/run.sh": file("#!/bin/sh\n", EXECUTABLE),
        "tests/test_ordinals.py": file("def test_first(): assert True\n"),
    }
    cases = [
        {"id": f"{call}-{index}", "input": {"call": call, "with": number}, "expected": {"value": value}}
        for index, (call, number, value) in enumerate(CASES)
    ]
    verifier = {"cases.json": json.dumps({"schema": "fairtrial.cases/1", "cases": cases}).encode()}
    verifier |= {"driver.py": PYTHON_DRIVER} if language == "python" else {"driver.mjs": NODE_DRIVER}
    gold = GitPatches().make_patch(base, {**base, source: file(right)}).data
    digest = sha256_digest(gold)
    entry = TaskEntry(
        id=f"ordinals-{language}",
        title="Ordinal suffixes",
        stratum="sample",
        cluster="ordinals",
        visibility="public",
        language=language,
        task_digest=digest,
        prompt_digest=digest,
        base_digest=tree_digest(base),
        verifier_digest=digest,
        gold_digest=digest,
        soundness="black-box",
    )
    return TaskBundle(
        entry=entry,
        prompt="Repair the suffixes.",
        base=base,
        verifier=verifier,
        gold_patch=gold,
        rehearsal_json=None,
        protected=PROTECTED,
        verify_seconds=verify_seconds,
    )
