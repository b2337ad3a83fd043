"""Patterns of protected paths."""

from __future__ import annotations

import pytest

from controller.domain.globs import matches_any, pattern_fault


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("tests/**", ["tests/a.py", "tests/a/b.py", "Tests/a.py"], ["tests", "src/tests/a.py", "tests2/a.py"]),
        ("**/conftest.py", ["conftest.py", "a/b/conftest.py", "a/CONFTEST.py"], ["conftest.pyc", "a/xconftest.py"]),
        ("*.lock", ["a.lock"], ["a/b.lock", "a.lock2"]),
        ("a/?.py", ["a/b.py"], ["a/bc.py", "a//.py"]),
        ("**", ["a", "a/b"], []),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az", "a/bz"]),
        ("setup.cfg", ["setup.cfg"], ["setupXcfg", "x/setup.cfg"]),
    ],
)
def test_patterns_match_whole_paths(pattern: str, inside: list[str], outside: list[str]) -> None:
    assert [path for path in inside if not matches_any(path, [pattern])] == []
    assert [path for path in outside if matches_any(path, [pattern])] == []


@pytest.mark.parametrize("pattern", ["/a", "a/../b", "a//b", "", "a**", "[ab]", "{a,b}", "!a", "a\\b"])
def test_patterns_that_promise_more_than_they_do_are_refused(pattern: str) -> None:
    assert pattern_fault(pattern) is not None
