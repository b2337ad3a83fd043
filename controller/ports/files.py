"""Durable, write-once files of a round or a release, as the stages that write them need it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class DurableFiles(Protocol):
    """What a method has written is on disk, with its directory entry, when it returns."""

    def create_directory(self, path: Path, files: Mapping[str, bytes]) -> None:
        """Make a directory that holds exactly these files (names may contain `/`), all at once or not at all.

        Raises InvalidInput when the path exists, DiskFull when there is no room.
        """
        ...

    def create_file(self, path: Path, data: bytes) -> None:
        """Write one new file and its parent directories, all of it or nothing; equal bytes may be written again.

        Raises InvalidInput when the file exists with other bytes, DiskFull when there is no room.
        """
        ...

    def read_directory(self, path: Path, *, bytes_max: int) -> dict[str, bytes]:
        """Every regular file below the directory by its POSIX name.

        Raises InvalidInput for a missing directory, a link, a special file, or more than `bytes_max` bytes in all.
        """
        ...
