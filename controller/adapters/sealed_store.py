"""A store of sealed tasks: one directory per task, named after its id.

<id>/task.json          what anybody may know, and the wrapped keys (see controller.domain.sealed)
<id>/runner.sealed      ciphertext of each part
<id>/verifier.sealed
<id>/curator.sealed
<id>/revealed.json      only when the task's content was disclosed
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.domain.limits import TASKS_MAX
from controller.domain.sealed import PARTS, Part, RevealMark, SealedTask
from controller.errors import InvalidTask
from controller.evidence.canonical import canonical, parse
from controller.ports.files import DurableFiles
from controller.ports.named_files import read_named

TASK: Final = "task.json"
MARK: Final = "revealed.json"
NAMES: Final = frozenset({TASK, MARK, *(f"{part}.sealed" for part in PARTS)})
TASK_BYTES_MAX: Final = 2**20  # a thousand recipients
PART_BYTES_MAX: Final = 64 * 2**20  # a base of 32 MiB in base64, and its names
RESTORE: Final = "Name a directory that `fairtrial task seal` wrote, or restore the store from the curators' copy."


def store_files(tasks: Mapping[str, tuple[SealedTask, Mapping[Part, bytes]]]) -> dict[str, bytes]:
    """The files of a new store, by their names in it."""
    files: dict[str, bytes] = {}
    for name, (task, ciphertexts) in tasks.items():
        files[f"{name}/{TASK}"] = canonical(task)
        files |= {f"{name}/{part}.sealed": data for part, data in ciphertexts.items()}
    return files


class SealedStore:
    """Reads a store. Nothing in it is followed that is a link, and nothing is opened here."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def tasks(self) -> tuple[SealedTask, ...]:
        """Every task, in byte order of the ids. Raises InvalidTask or NotCanonical naming the file."""
        try:
            with os.scandir(self.directory) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            raise InvalidTask(f"{self.directory}: {error.strerror}", remedy=RESTORE) from error
        if not 0 < len(names) <= TASKS_MAX:
            raise InvalidTask(f"{self.directory}: holds {len(names)} sealed tasks", remedy=RESTORE)
        return tuple(self.task(name) for name in names)

    def task(self, name: str) -> SealedTask:
        """One task. Raises InvalidTask or NotCanonical."""
        place = self.directory / name
        try:
            with os.scandir(place) as entries:
                strange = sorted(e.name for e in entries if e.name not in NAMES or not e.is_file(follow_symlinks=False))
        except OSError as error:
            raise InvalidTask(f"{place}: {error.strerror}", remedy=RESTORE) from error
        if strange or place.is_symlink():
            raise InvalidTask(f"{place}: {strange[0] if strange else 'a link'} is no part of a store", remedy=RESTORE)
        task = parse(self._read(name, TASK, TASK_BYTES_MAX), SealedTask, f"{place / TASK}")
        if task.entry.id != name:
            raise InvalidTask(f"{place / TASK}: is task {task.entry.id}", remedy=RESTORE)
        return task

    def ciphertext(self, name: str, part: Part) -> bytes:
        """One encrypted part, unchecked. Raises InvalidTask when it is not there."""
        return self._read(name, f"{part}.sealed", PART_BYTES_MAX)

    def mark(self, name: str) -> RevealMark | None:
        """Where the task's content was disclosed; None while it is sealed. Raises InvalidTask or NotCanonical."""
        path = self.directory / name / MARK
        if not os.path.lexists(path):
            return None
        return parse(self._read(name, MARK, TASK_BYTES_MAX), RevealMark, f"{path}")

    def add_mark(self, mark: RevealMark, files: DurableFiles) -> None:
        """Write down that the task was disclosed. The first mark stays."""
        if self.mark(mark.id) is None:
            files.create_file(self.directory / mark.id / MARK, canonical(mark))

    def _read(self, name: str, file: str, bytes_max: int) -> bytes:
        path = self.directory / name / file
        try:
            return read_named(path, bytes_max=bytes_max, follow=False)
        except OSError as error:
            raise InvalidTask(f"{path}: {error.strerror}", remedy=RESTORE) from error
