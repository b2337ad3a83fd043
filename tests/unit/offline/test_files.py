"""Directories that were made to hurt: every one is refused at the first step, and nothing outside is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.offline import files
from controller.offline.__main__ import main
from controller.offline.examination import STEPS

Files = dict[str, bytes]
Damage = Callable[[Path], object]


@pytest.fixture
def directory(good_bundle: Files, tmp_path: Path) -> Path:
    """The good bundle on disk."""
    for name, data in good_bundle.items():
        (tmp_path / "bundle" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bundle" / name).write_bytes(data)
    return tmp_path / "bundle"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(list(arguments))
    except SystemExit as stop:
        code = int(stop.code or 0)
    found = capsys.readouterr()
    return code, found.out, found.err


def test_a_good_bundle_is_accepted(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(directory))
    assert (code, err) == (0, "")
    assert "accepted; self-signed: integrity only" in out
    assert "not recomputed here: report.html" in out
    code, out, _ = run(capsys, str(directory), "--key", str(directory / "keys.json"), "--json")
    report = json.loads(out)
    assert (code, report["passed"], report["trust"], len(report["steps"])) == (0, True, "pinned", len(STEPS))


def _linked_file(directory: Path) -> None:
    (directory / "report.html").rename(directory.parent / "elsewhere")
    (directory / "report.html").symlink_to(directory.parent / "elsewhere")


def _linked_directory(directory: Path) -> None:
    (directory / "patches").rename(directory.parent / "elsewhere")
    (directory / "patches").symlink_to(directory.parent / "elsewhere")


def _all_links(directory: Path) -> None:
    directory.rename(directory.parent / "elsewhere")
    directory.mkdir()
    for entry in (directory.parent / "elsewhere").iterdir():
        (directory / entry.name).symlink_to(entry)


def _fifo(directory: Path) -> None:
    os.mkfifo(directory / "pipe")


def _fifo_in_place(directory: Path) -> None:
    (directory / "report.html").unlink()
    os.mkfifo(directory / "report.html")


def _device(directory: Path) -> None:
    (directory / "report.html").unlink()
    (directory / "report.html").symlink_to("/dev/zero")


def _missing(directory: Path) -> None:
    (directory / "ledger.jsonl").unlink()


def _nothing(directory: Path) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            path.unlink()


def _deep(directory: Path) -> None:
    (directory / "/".join("abcdefgh")).mkdir(parents=True)
    (directory / "/".join("abcdefgh") / "x").write_bytes(b"")


DAMAGES: dict[str, Damage] = {
    "a linked file": _linked_file,
    "a linked directory": _linked_directory,
    "all links": _all_links,
    "a FIFO": _fifo,
    "a FIFO in place of a file": _fifo_in_place,
    "a device": _device,
    "directories too deep": _deep,
    "a file too many": lambda d: (d / "notes.txt").write_bytes(b"x"),
    "a name with escapes": lambda d: (d / "a\x1b[31m\n").write_bytes(b"x"),
    "a name that is no text": lambda d: (d / os.fsdecode(b"\xff\xfe")).write_bytes(b"x"),
    "a file missing": _missing,
    "nothing": _nothing,
    "an empty index": lambda d: (d / "index.dsse.json").write_bytes(b""),
    "keys that are none": lambda d: (d / "keys.json").write_bytes(b"[" * 10_000),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_hostile_directory_is_refused_at_the_first_step(
    directory: Path, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(directory)
    code, out, err = run(capsys, str(directory))
    assert (code, err) == (1, "")
    assert out.startswith("NO   1 index: ")
    assert out.replace("\n", "").isprintable()
    assert "REFUSED" in out.splitlines()[-1]


def test_more_bytes_or_files_than_the_limits_are_refused(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BYTES_MAX", 20_000)
    assert "more than the 20000 bytes" in run(capsys, str(directory))[1]
    monkeypatch.setattr(files, "FILES_MAX", 5)
    assert "more than 5 files" in run(capsys, str(directory))[1]


def test_a_sparse_file_of_a_terabyte_is_refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (directory / "report.html").open("ab") as stream:
        stream.truncate(2**40)
    code, out, _ = run(capsys, str(directory))
    assert (code, "more than the" in out) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help", "--unknown"],
        ["{bundle}", "--unknown"],
        ["{bundle}/absent"],
        ["{bundle}/report.html"],
        ["x" * 5_000],
        ["{bundle}", "--key", "{bundle}/absent"],
        ["{bundle}", "--key", "{bundle}/report.html"],
        ["{bundle}", "--key", "{bundle}"],
    ],
)
def test_what_was_typed_wrong_ends_with_2(
    directory: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *(each.format(bundle=directory) for each in arguments))
    if "--help" in arguments:
        assert (code, "BUNDLE" in out) == (0, True)
        return
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err
