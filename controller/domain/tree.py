"""A source tree as values: never a directory on the controller that a stranger's bytes could shape.

The harvested tree of an attempt travels as one JSON-lines file and is parsed into this form; git objects are made from
it through standard input only, so a hostile path is never opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from controller.domain.record import Record

REGULAR: Final = "100644"
EXECUTABLE: Final = "100755"
SYMLINK: Final = "120000"


class TreeFile(Record):
    """One file: git's mode for it and its bytes (for a symlink, the target)."""

    mode: str = Field(pattern=r"^(100644|100755|120000)$")
    data: bytes


Tree = Mapping[str, TreeFile]


def tree_digest(tree: Tree) -> str:
    """`sha256:<hex>` over mode, path and content digest of every file in byte order of the paths."""
    total = hashlib.sha256()
    for path in sorted(tree, key=lambda text: text.encode()):
        entry = tree[path]
        total.update(f"{entry.mode} {hashlib.sha256(entry.data).hexdigest()} ".encode() + path.encode() + b"\0")
    return f"sha256:{total.hexdigest()}"


def changed_paths(before: Tree, after: Tree) -> tuple[str, ...]:
    """Paths added, removed or altered in content or mode, in byte order."""
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return tuple(sorted(paths, key=lambda text: text.encode()))
