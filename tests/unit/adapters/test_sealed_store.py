"""A store of sealed tasks as a directory that anybody may have changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.adapters.sealed_store import TASK_BYTES_MAX, SealedStore, store_files
from controller.domain.sealed import RevealMark
from controller.errors import FairtrialError, InvalidTask, NotCanonical
from controller.evidence.sealing import opening_of_content
from tests.world.sealed import OTHERS, hidden_bundle, sealed_task


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A store of two tasks."""
    path = tmp_path / "store"
    LocalFiles().create_directory(path, store_files({name: sealed_task(name) for name in ("hidden", "other")}))
    return path


def test_a_store_is_read_back_as_it_was_written(directory: Path) -> None:
    store = SealedStore(directory)
    assert store.tasks() == (sealed_task("hidden")[0], sealed_task("other")[0])
    for part, data in sealed_task("other")[1].items():
        assert store.ciphertext("other", part) == data
    assert store.mark("hidden") is None


def _mark(round_id: str) -> RevealMark:
    opening = opening_of_content(hidden_bundle(), OTHERS)
    return RevealMark(id="hidden", round_id=round_id, manifest_digest=opening.task_digest, opening=opening)


def test_the_first_mark_of_a_disclosure_stays(directory: Path) -> None:
    store = SealedStore(directory)
    store.add_mark(_mark("first"), LocalFiles())
    store.add_mark(_mark("second"), LocalFiles())
    assert store.mark("hidden") == _mark("first")
    assert store.mark("other") is None
    assert len(store.tasks()) == 2


def _rename(store: Path) -> None:
    (store / "hidden").rename(store / "renamed")


def _duplicate(store: Path) -> None:
    (store / "twin").mkdir()
    for path in (store / "hidden").iterdir():
        (store / "twin" / path.name).write_bytes(path.read_bytes())


def _link_task(store: Path) -> None:
    (store / "hidden").rename(store.parent / "elsewhere")
    (store / "hidden").symlink_to(store.parent / "elsewhere")


def _link_file(store: Path) -> None:
    (store / "hidden" / "task.json").rename(store.parent / "task.json")
    (store / "hidden" / "task.json").symlink_to(store.parent / "task.json")


def _traverse(store: Path) -> None:
    path = store / "hidden" / "task.json"
    path.write_bytes(path.read_bytes().replace(b'"id":"hidden"', b'"id":"../../hidden"'))


def _fifo(store: Path) -> None:
    (store / "hidden" / "task.json").unlink()
    os.mkfifo(store / "hidden" / "task.json")


HOSTILE: dict[str, tuple[Callable[[Path], object], type[FairtrialError], str]] = {
    "renamed": (_rename, InvalidTask, r"renamed/task\.json: is task hidden"),
    "the same id twice": (_duplicate, InvalidTask, r"twin/task\.json: is task hidden"),
    "a link to a task": (_link_task, InvalidTask, "a link is no part of a store"),
    "a link to a file": (_link_file, InvalidTask, r"task\.json is no part of a store"),
    "a path for an id": (_traverse, NotCanonical, r"hidden/task\.json: entry\.id"),
    "a FIFO": (_fifo, InvalidTask, r"task\.json is no part of a store"),
    "an unknown file": (lambda s: (s / "hidden" / "notes").write_text(""), InvalidTask, "notes is no part"),
    "a stray file": (lambda s: (s / "notes").write_text(""), InvalidTask, "notes: Not a directory"),
    "a directory for a file": (lambda s: (s / "hidden" / "revealed.json").mkdir(), InvalidTask, "no part of a store"),
    "no task": (lambda s: (s / "hidden" / "task.json").unlink(), InvalidTask, "No such file"),
    "no JSON": (lambda s: (s / "hidden" / "task.json").write_bytes(b"\xff"), NotCanonical, r"hidden/task\.json"),
    "other spelling": (lambda s: (s / "hidden" / "task.json").open("a").write("\n"), NotCanonical, "differs"),
    "too large": (
        lambda s: (s / "hidden" / "task.json").write_bytes(b" " * (TASK_BYTES_MAX + 1)), InvalidTask, "larger than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_store_is_refused_with_the_place(name: str, directory: Path) -> None:
    change, kind, said = HOSTILE[name]
    change(directory)
    with pytest.raises(kind, match=said):
        SealedStore(directory).tasks()


def test_what_is_no_store_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match="No such file"):
        SealedStore(tmp_path / "nowhere").tasks()
    with pytest.raises(InvalidTask, match="holds 0 sealed tasks"):
        SealedStore(tmp_path).tasks()


def test_a_missing_part_and_a_damaged_mark_are_refused(directory: Path) -> None:
    store = SealedStore(directory)
    (directory / "hidden" / "verifier.sealed").unlink()
    with pytest.raises(InvalidTask, match=r"verifier\.sealed: No such file"):
        store.ciphertext("hidden", "verifier")
    (directory / "hidden" / "revealed.json").write_text("{}")
    with pytest.raises(NotCanonical, match=r"revealed\.json"):
        store.mark("hidden")
