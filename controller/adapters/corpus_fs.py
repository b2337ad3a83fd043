"""Load a task from its directory; see docs/tasks.md for the files.

task.toml        what the task is (format fairtrial.task/1)
prompt.md        what the harness is told
bug.patch        from the pinned release to the base the harness receives
gold.patch       from the base to a right solution
verifier/        driver.py or driver.mjs, and cases.json: hidden from the harness
rehearsal.json   what the scripted model plays (optional)
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from controller.adapters.archive_tree import read_archive
from controller.adapters.git_patch import GitPatches
from controller.adapters.rehearsal.script import parse_script
from controller.adapters.strict_toml import strict_toml
from controller.adapters.task_sources import TaskSource, TaskSources
from controller.domain.globs import matches_any, pattern_fault
from controller.domain.ids import Slug, sha256_digest
from controller.domain.plan import TaskEntry, Visibility
from controller.domain.record import Record, field_faults
from controller.domain.task import TaskBundle
from controller.domain.tree import REGULAR, TreeFile, changed_paths, tree_digest
from controller.errors import ImageRecipeFailed, InvalidInput, InvalidTask

FILE_BYTES_MAX: Final = 4 * 2**20
FILES_MAX: Final = 200
DRIVERS: Final = {"python": "driver.py", "node": "driver.mjs"}
REQUIRED: Final = ("task.toml", "prompt.md", "bug.patch", "gold.patch", "verifier/cases.json")
OPTIONAL: Final = ("rehearsal.json", "README.md", "verifier/driver.py", "verifier/driver.mjs")
KEPT: Final = ("task.toml", "bug.patch", "README.md")  # what neither a harness nor a verifier is given


class TaskFile(Record):
    """`task.toml`."""

    schema_version: Literal["fairtrial.task/1"] = Field(alias="schema")
    id: Slug
    title: Annotated[str, StringConstraints(min_length=3, max_length=120)]
    stratum: Slug
    cluster: Slug
    visibility: Visibility
    language: Literal["python", "node"]
    soundness: Literal["black-box", "in-process"]
    verify_seconds: int = Field(ge=1, le=1800)
    protected: tuple[str, ...] = Field(min_length=1)
    licence: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+-]{1,60}$")] | None = (
        None  # of the source, by SPDX
    )
    source: TaskSource


def load_task(directory: Path, sources: TaskSources) -> TaskBundle:
    """The task with its trees. Raises as `load_directory` does."""
    return load_directory(directory, sources)[0]


def load_directory(directory: Path, sources: TaskSources) -> tuple[TaskBundle, dict[str, bytes]]:
    """The task with its trees, and the files of its directory that make no part of them.

    Raises InvalidTask listing every problem of the directory at once, each with its file and field; ImageRecipeFailed
    when the source can't be fetched.
    """
    files = _read_directory(directory)
    task = _check_files(directory, files)
    label = f"task {task.id}"
    try:
        release = read_archive(sources.fetch(task.source), origin=task.source.file)
    except (InvalidTask, ImageRecipeFailed) as error:
        raise type(error)(f"{label}: {error}", remedy=error.remedy) from error
    release = {path: file for path, file in release.items() if not matches_any(path, task.source.drop)}
    base = _patched(release, files["bug.patch"], f"{label}: bug.patch")
    solved = _patched(base, files["gold.patch"], f"{label}: gold.patch")
    if touched := [path for path in changed_paths(base, solved) if matches_any(path, task.protected)]:
        raise InvalidTask(f"{label}: gold.patch changes protected paths: {', '.join(touched)}")
    verifier = {path.removeprefix("verifier/"): data for path, data in files.items() if path.startswith("verifier/")}
    entry = TaskEntry(
        id=task.id,
        title=task.title,
        stratum=task.stratum,
        cluster=task.cluster,
        visibility=task.visibility,
        language=task.language,
        task_digest=tree_digest(_as_tree(files)),
        prompt_digest=sha256_digest(files["prompt.md"]),
        base_digest=tree_digest(base),
        verifier_digest=tree_digest(_as_tree(verifier)),
        gold_digest=sha256_digest(files["gold.patch"]),
        soundness=task.soundness,
    )
    bundle = TaskBundle(
        entry=entry,
        prompt=files["prompt.md"].decode(),
        base=base,
        verifier=verifier,
        gold_patch=files["gold.patch"],
        rehearsal_json=files["rehearsal.json"].decode() if "rehearsal.json" in files else None,
        protected=task.protected,
        verify_seconds=task.verify_seconds,
    )
    return bundle, {name: files[name] for name in KEPT if name in files}


def read_task_file(data: bytes, where: str) -> TaskFile:
    """A `task.toml` apart from its directory. Raises InvalidTask naming every field that is wrong."""
    faults: list[str] = []
    task = _parse_toml(Path(where), data, faults)
    if task is None:
        raise InvalidTask("\n".join(faults or [f"{where}: empty"]))
    return task


def _read_directory(directory: Path) -> dict[str, bytes]:
    """Every file below the directory, by relative path. Only regular files of modest size are accepted."""
    if not directory.is_dir():
        raise InvalidTask(f"{directory}: not a directory")
    found = sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
    if len(found) > FILES_MAX:
        raise InvalidTask(f"{directory}: more than {FILES_MAX} files")
    faults = []
    files: dict[str, bytes] = {}
    for path in found:
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or not path.is_file() or path.stat().st_size > FILE_BYTES_MAX:
            faults.append(f"{directory / name}: not a regular file of at most {FILE_BYTES_MAX} bytes")
        else:
            files[name] = path.read_bytes()
    if faults:
        raise InvalidTask("\n".join(faults))
    return files


def _check_files(directory: Path, files: dict[str, bytes]) -> TaskFile:
    """The parsed `task.toml`, after every problem that can be seen without the source has been collected."""
    faults = [f"{directory / name}: missing" for name in REQUIRED if name not in files]
    faults += [f"{directory / name}: unknown file" for name in files if name not in REQUIRED + OPTIONAL]
    for name in ("prompt.md", "rehearsal.json"):
        try:
            if name in files and not files[name].decode().strip():
                faults.append(f"{directory / name}: empty")
        except UnicodeDecodeError:
            faults.append(f"{directory / name}: not UTF-8")
    if "rehearsal.json" in files:
        try:
            parse_script(files["rehearsal.json"], origin=str(directory / "rehearsal.json"))
        except InvalidTask as error:
            faults.append(str(error))
    task = _parse_toml(directory / "task.toml", files.get("task.toml", b""), faults)
    if task is not None:
        if task.id != directory.resolve().name:
            faults.append(f"{directory / 'task.toml'}: id: is {task.id}, the directory is called {directory.name}")
        if f"verifier/{DRIVERS[task.language]}" not in files:
            faults.append(f"{directory / 'verifier' / DRIVERS[task.language]}: missing")
        for field, patterns in (("protected", task.protected), ("source.drop", task.source.drop)):
            faults += [
                f"{directory / 'task.toml'}: {field}: {pattern!r}: {fault}"
                for pattern in patterns
                if (fault := pattern_fault(pattern))
            ]
    if faults or task is None:
        raise InvalidTask("\n".join(faults))
    return task


def _parse_toml(path: Path, data: bytes, faults: list[str]) -> TaskFile | None:
    try:
        return TaskFile.model_validate(strict_toml(data))
    except ValidationError as error:
        faults += [f"{path}: {fault}" for fault in field_faults(error)]
    except ValueError as error:
        if data:
            faults.append(f"{path}: (whole file): {error}")
    return None


def _patched(base: dict[str, TreeFile], patch: bytes, origin: str) -> dict[str, TreeFile]:
    try:
        after = GitPatches().apply_check(base, patch)
    except InvalidInput as error:
        raise InvalidTask(f"{origin}: {error}") from error
    if after == base:
        raise InvalidTask(f"{origin}: changes nothing")
    return after


def _as_tree(files: dict[str, bytes]) -> dict[str, TreeFile]:
    return {path: TreeFile(mode=REGULAR, data=data) for path, data in files.items()}
