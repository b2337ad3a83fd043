from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.errors import DiskFull, InvalidInput
from controller.ports.named_files import read_named

FILES = {"a.json": b"1", "patches/b.patch": b"2", "empty": b""}


def test_a_directory_appears_whole_and_is_read_back(tmp_path: Path) -> None:
    files = LocalFiles()
    files.create_directory(tmp_path / "new" / "round", FILES)
    assert files.read_directory(tmp_path / "new" / "round", bytes_max=2) == FILES
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["round"]


def test_nothing_that_exists_is_overwritten(tmp_path: Path) -> None:
    files = LocalFiles()
    files.create_directory(tmp_path / "round", FILES)
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("round", "dangling"):
        with pytest.raises(InvalidInput, match="never overwritten"):
            files.create_directory(tmp_path / name, {"x": b""})
    files.create_file(tmp_path / "deep" / "file", b"one")
    files.create_file(tmp_path / "deep" / "file", b"one")
    for other in (b"two", b"on", b"one more"):
        with pytest.raises(InvalidInput):
            files.create_file(tmp_path / "deep" / "file", other)
    assert (tmp_path / "deep" / "file").read_bytes() == b"one"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "", "a//b", "./a", "a/"])
def test_names_that_lead_elsewhere_leave_nothing_behind(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="plain relative"):
        LocalFiles().create_directory(tmp_path / "round", {"good": b"", name: b""})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull):
        LocalFiles().create_directory(tmp_path / "round", FILES)
    with pytest.raises(DiskFull):
        LocalFiles().create_file(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


def test_links_special_files_and_too_many_bytes_are_refused(tmp_path: Path) -> None:
    files = LocalFiles()
    with pytest.raises(InvalidInput, match="not a directory"):
        files.read_directory(tmp_path / "none", bytes_max=10)
    for name, make in (("link", lambda p: p.symlink_to("/etc/hostname")), ("fifo", os.mkfifo)):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "x")
        with pytest.raises(InvalidInput):
            files.read_directory(tmp_path / name, bytes_max=10)
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "linked").symlink_to(tmp_path / "link")
    with pytest.raises(InvalidInput):
        files.read_directory(tmp_path / "dir", bytes_max=10)
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "x").write_bytes(b"123")
    with pytest.raises(InvalidInput, match="more bytes"):
        files.read_directory(tmp_path / "big", bytes_max=2)


def test_directories_deeper_than_the_stack_and_odd_names_are_read_in_byte_order(tmp_path: Path) -> None:
    place = tmp_path / "bundle"
    place.mkdir()
    for name in ("b", "a", "a-b", "\udcff", "x\n\x1b[31m"):
        (place / name).write_bytes(b"x")
    deep = place
    for _ in range(1500):
        deep /= "d"
        deep.mkdir()
    (deep / "f").write_bytes(b"deep")
    found = LocalFiles().read_directory(place, bytes_max=100)
    (deep / "f").unlink()
    while deep != place:
        deep.rmdir()
        deep = deep.parent
    assert list(found) == sorted(found, key=os.fsencode)
    assert len(found) == 6


@pytest.mark.parametrize("make", [os.mkfifo, lambda p: p.symlink_to("/dev/zero"), lambda p: p.symlink_to(p), os.mkdir])
def test_a_named_file_is_never_waited_for_nor_read_without_end(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "named")
    with pytest.raises(OSError, match="named"):
        read_named(tmp_path / "named")
    with pytest.raises(OSError, match="larger than 3 bytes"):
        (tmp_path / "long").write_bytes(b"1234")
        read_named(tmp_path / "long", bytes_max=3)


def test_a_file_that_has_nothing_to_say_yet_is_refused_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(io.FileIO):
        """As /proc/kmsg, a regular file by its mode, answers a read that may not wait."""

        def read(self, size: int | None = -1, /) -> bytes:
            return None  # type: ignore[return-value]

    (tmp_path / "silent").write_bytes(b"x")
    monkeypatch.setattr(os, "fdopen", lambda descriptor, _, closefd: Silent(descriptor, closefd=closefd))
    with pytest.raises(OSError, match="has nothing to read now"):
        read_named(tmp_path / "silent")
