"""Files that a person names on the command line."""

from __future__ import annotations

from pathlib import Path

from controller.errors import InvalidInput
from controller.ports.named_files import NAMED_FILE_BYTES_MAX, read_named


def read_input(path: Path, *, bytes_max: int = NAMED_FILE_BYTES_MAX) -> bytes:
    """The whole file. Raises InvalidInput with its path and why it can't be read."""
    try:
        return read_named(path, bytes_max=bytes_max)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
