"""Which paths a source tree may hold. Stricter than git, because git's own refusals differ by platform and setting."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

PATH_BYTES_MAX: Final = 1024
COMPONENT_BYTES_MAX: Final = 255
DEPTH_MAX: Final = 64

# Code points that HFS+ leaves out when it compares names, so that `.g<U+200C>it` opens `.git` there.
_HFS_IGNORED: Final = frozenset(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF, 0x00AD, 0x034F]
)


def path_fault(path: str) -> str | None:
    """Why `path` may not name a file of a tree, or None when it may.

    Accepted: relative POSIX paths of printable Unicode without a backslash, without empty, `.` or `..` components, and
    without a component that any file system takes for `.git`.
    """
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if not 0 < length <= PATH_BYTES_MAX:
        return f"it must have 1 to {PATH_BYTES_MAX} bytes"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path):
        return "it has a control character or a line separator"
    if "\\" in path:
        return "it has a backslash"
    if " /" in path:
        return "a directory's name ends with a space, and git can't read its own patch header of an empty file there"
    components = path.split("/")
    if len(components) > DEPTH_MAX:
        return f"it is more than {DEPTH_MAX} levels deep"
    for component in components:
        if component in ("", ".", ".."):
            return "it is absolute or has an empty, `.` or `..` component"
        if len(component.encode()) > COMPONENT_BYTES_MAX:
            return f"a component has more than {COMPONENT_BYTES_MAX} bytes"
        if is_git_directory(component):
            return "a component stands for `.git`"
    return None


def is_git_directory(component: str) -> bool:
    """True when git, HFS+ or NTFS takes this name for `.git`."""
    seen = "".join(char for char in component if ord(char) not in _HFS_IGNORED).casefold()
    seen = seen.split(":", 1)[0].rstrip(" .")
    return seen in (".git", "git~1")


def folded(path: str) -> str:
    """The path as a case-insensitive, normalising file system compares it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


class PathSet:
    """Paths of one tree, added one by one; each must be safe and distinct from the others on any file system."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}  # folded path -> path
        self._directories: dict[str, str] = {}

    def add(self, path: str) -> str | None:
        """Add the path of a file. The fault when it can't stand beside those already added, else None."""
        if fault := path_fault(path):
            return fault
        key = folded(path)
        if key in self._files:
            return "it is there twice" if self._files[key] == path else f"it collides with {self._files[key]!r}"
        if key in self._directories:
            return "it is also a directory"
        parts = path.split("/")
        for depth in range(len(parts) - 1, 0, -1):
            directory = "/".join(parts[:depth])
            above = folded(directory)
            if self._directories.get(above) == directory:
                break
            if above in self._files:
                return f"{self._files[above]!r} is a file"
            if self._directories.setdefault(above, directory) != directory:
                return f"its directory collides with {self._directories[above]!r}"
        self._files[key] = path
        return None


def tree_path_faults(paths: Iterable[str]) -> tuple[str, ...]:
    """Every fault of a whole set of paths, each naming its path."""
    seen = PathSet()
    return tuple(f"{path!r}: {fault}" for path in paths if (fault := seen.add(path)))
