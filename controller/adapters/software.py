"""Which build of fairtrial this is: one digest over every file of the package, and one for the module of an adapter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from controller.adapters.files_durable import file_digest
from controller.domain.ids import Digest, sha256_digest
from controller.evidence.canonical import dumps

PACKAGE: Final = Path(__file__).resolve().parents[1]
_DERIVED: Final = "__pycache__"


def software_digest(package: Path = PACKAGE) -> Digest:
    """SHA-256 of the canonical JSON object that maps the path of every file to its own digest.

    What Python derives from the files is left out, so that the same source has the same digest on every machine.
    """
    files = {
        path.relative_to(package).as_posix(): file_digest(path)
        for path in package.rglob("*")
        if path.is_file() and _DERIVED not in path.parts
    }
    return sha256_digest(dumps(files))


def module_digest(thing: object) -> Digest:
    """SHA-256 of the source file that defines the thing's class."""
    source = sys.modules[type(thing).__module__].__file__
    assert source is not None, "every class of ours is defined in a file"
    return file_digest(Path(source))
