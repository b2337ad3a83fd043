"""A source tree as values: never a directory on the controller that a stranger's bytes could shape.

The harvested tree of an attempt travels as one JSON-lines file and is parsed into this form; git objects are made from
it through standard input only, so a hostile path is never opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from controller.domain.encoded import EncodedBytes
from controller.domain.ids import sha256_digest
from controller.domain.record import Record

REGULAR: Final = "100644"
EXECUTABLE: Final = "100755"
SYMLINK: Final = "120000"


class TreeFile(Record):
    """One file: git's mode for it and its bytes (for a symlink, the target)."""

    mode: str = Field(pattern=r"^(100644|100755|120000)$")
    data: EncodedBytes


Tree = Mapping[str, TreeFile]


def tree_digest(tree: Tree) -> str:
    """`sha256:<hex>` over mode, path and content digest of every file in byte order of the paths."""
    return listing_digest({path: (file.mode, sha256_digest(file.data)) for path, file in tree.items()})


def listing_digest(listing: Mapping[str, tuple[str, str]]) -> str:
    """The digest of a tree of which only mode and content digest of each file are known."""
    total = hashlib.sha256()
    for path in sorted(listing, key=lambda text: text.encode()):
        mode, digest = listing[path]
        total.update(f"{mode} {digest.removeprefix('sha256:')} ".encode() + path.encode() + b"\0")
    return f"sha256:{total.hexdigest()}"


def changed_paths(before: Tree, after: Tree) -> tuple[str, ...]:
    """Paths added, removed or altered in content or mode, in byte order."""
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return tuple(sorted(paths, key=lambda text: text.encode()))
