"""Files that a person names on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from controller.errors import InvalidInput
from controller.evidence.witness import Witness, parse_witnesses
from controller.ports.named_files import NAMED_FILE_BYTES_MAX, read_named

WITNESSES_BYTES_MAX: Final = 2**20


def read_input(path: Path, *, bytes_max: int = NAMED_FILE_BYTES_MAX) -> bytes:
    """The whole file. Raises InvalidInput with its path and why it can't be read."""
    try:
        return read_named(path, bytes_max=bytes_max)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error


def read_witnesses(path: Path) -> tuple[Witness, ...]:
    """The witnesses of a file with one verifier key per line. Raises InvalidInput."""
    return parse_witnesses(read_input(path, bytes_max=WITNESSES_BYTES_MAX).decode(errors="replace"), str(path))
