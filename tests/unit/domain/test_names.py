"""A name is what a reader sees of it."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from controller.domain.names import NAME_CHARS_MAX, Name, look

NAMES: TypeAdapter[str] = TypeAdapter(Name)


@pytest.mark.parametrize(
    "name", ["a", "django__django-11099", "Codex CLI 0.171", "café", "任务-1", "задача", "x" * NAME_CHARS_MAX, "v2 (b)"]
)
def test_what_can_be_read_is_a_name(name: str) -> None:
    assert NAMES.validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "a ", " a", "\u00a0a", "a\n", "a\tb", "a\0b", "\x1b[2Ja", "a\x7f", "a\x85",  # spaces and controls
        "a\u200b", "\u200bb", "a\u200db", "\ufeffa", "a\u00adb", "a\u2060b", "\U000e0041a",  # zero width
        "\u202ea", "a\u2066b\u2069", "a\u2028b",  # direction and lines
        "\u3164", "a\u115fb", "a\uffa0", "a\u034fb", "a\ufe0f", "a\U000e0100", "\u2800",  # drawn as nothing
        "x" * (NAME_CHARS_MAX + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_none(name: str) -> None:
    with pytest.raises(ValidationError):
        NAMES.validate_python(name)


@pytest.mark.parametrize(
    ("first", "second"),
    [("caf\u00e9", "cafe\u0301"), ("\uff41", "a"), ("a b", "a  b"), ("a b", "a\u00a0b"), ("ﬁx", "fix")],
)
def test_names_that_look_alike_have_one_look(first: str, second: str) -> None:
    assert look(first) == look(second)


def test_names_that_differ_in_case_look_different() -> None:
    assert look("Task-1") != look("task-1")
