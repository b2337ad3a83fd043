"""A release archive of a package registry as a tree, read in memory under strict rules; nothing is extracted."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Final

from controller.domain.paths import tree_path_faults
from controller.domain.tree import EXECUTABLE, REGULAR, TreeFile
from controller.errors import InvalidTask

UNPACKED_BYTES_MAX: Final = 32 * 2**20
ENTRIES_MAX: Final = 5_000


def read_archive(data: bytes, *, origin: str) -> dict[str, TreeFile]:
    """The regular files of a gzipped tar below its one top directory.

    Raises InvalidTask, naming `origin`, for links, devices, unsafe or repeated paths, several top directories, and
    archives that unpack to more than the limits.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            unpacked = packed.read(UNPACKED_BYTES_MAX + 1)
    except (OSError, EOFError, ValueError) as error:
        raise InvalidTask(f"{origin}: not a gzip archive ({error})") from error
    if len(unpacked) > UNPACKED_BYTES_MAX:
        raise InvalidTask(f"{origin}: unpacks to more than {UNPACKED_BYTES_MAX} bytes")
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
            return _regular_files(tar, origin)
    except (tarfile.TarError, ValueError) as error:
        raise InvalidTask(f"{origin}: not a tar archive ({error})") from error


def _regular_files(tar: tarfile.TarFile, origin: str) -> dict[str, TreeFile]:
    tree: dict[str, TreeFile] = {}
    tops: set[str] = set()
    for count, entry in enumerate(tar, start=1):
        if count > ENTRIES_MAX:
            raise InvalidTask(f"{origin}: more than {ENTRIES_MAX} entries")
        top, _, path = entry.name.partition("/")
        tops.add(top)
        if entry.isdir():
            continue
        content = tar.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise InvalidTask(f"{origin}: {entry.name!r} is not a regular file")
        if path in tree:
            raise InvalidTask(f"{origin}: {entry.name!r} is there twice")
        tree[path] = TreeFile(mode=EXECUTABLE if entry.mode & 0o100 else REGULAR, data=content.read())
    if len(tops) != 1 or tops <= {"", ".", ".."}:
        raise InvalidTask(f"{origin}: needs exactly one top directory, has {sorted(tops)[:5]}")
    if faults := tree_path_faults(tree):
        raise InvalidTask(f"{origin}: {faults[0]}")
    return tree
