"""Path patterns of task files: `*` and `?` within one component, `**` across components."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from controller.domain.paths import folded


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    """True when a pattern matches the whole path. Case and Unicode form are ignored, so `Tests/` can't pass for new."""
    return any(_compiled(folded(pattern)).fullmatch(folded(path)) for pattern in patterns)


def pattern_fault(pattern: str) -> str | None:
    """Why this is not a usable pattern, or None."""
    components = pattern.split("/")
    if any(component in ("", ".", "..") for component in components):
        return "it is absolute or has an empty, `.` or `..` component"
    if any("**" in component and component != "**" for component in components):
        return "`**` must stand alone between slashes"
    if any(char in pattern for char in "[]{}!\\"):
        return "only `*`, `?` and `**` are special; brackets, braces and backslashes are refused"
    return None


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    components = pattern.split("/")
    text = ""
    for index, component in enumerate(components):
        is_last = index == len(components) - 1
        if component == "**":
            text += ".*" if is_last else "(?:[^/]+/)*"
            continue
        text += "".join("[^/]*" if char == "*" else "[^/]" if char == "?" else re.escape(char) for char in component)
        text += "" if is_last else "/"
    return re.compile(text, re.DOTALL)
