"""What the guest writes is what the controller's strict parser reads, whatever lies in the workspace."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from controller.domain.limits import ArtifactLimits
from controller.domain.paths import path_fault
from controller.domain.tree_stream import HarvestedTree, parse_tree_stream
from controller.guest.harvest import Limits, harvest, is_plain

LIMITS = ArtifactLimits()


def harvested(root: Path, *, entries: int = 1000, file_bytes: int = 2**20, stream_bytes: int = 2**24) -> HarvestedTree:
    data, truncated = harvest(str(root), Limits(stream_bytes, entries, file_bytes))
    assert len(data) <= stream_bytes
    tree = parse_tree_stream(data, LIMITS)
    assert tree.truncated is truncated
    return tree


def test_files_modes_and_links_arrive_and_the_roots_git_does_not(tmp_path: Path) -> None:
    for name, text in {"b/x": "1", "b.txt": "2", "b-c/y": "3", "a": "", "é": "4", ".git/config": "no"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "link").symlink_to("/etc/shadow")
    tree = harvested(tmp_path)
    assert list(tree.tree) == ["a", "b-c/y", "b.txt", "b/x", "link", "é"]
    assert (tree.tree["a"].mode, tree.tree["b/x"].mode) == ("100755", "100644")
    assert (tree.tree["link"].mode, tree.tree["link"].data) == ("120000", b"/etc/shadow")
    assert (tree.specials, tree.truncated) == ((), False)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "sock"))
    (tmp_path / "one").write_text("x")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "gitfile").mkdir()
    (tmp_path / "gitfile" / ".git").write_text("gitdir: /etc")
    (tmp_path / ".Git").mkdir()
    (tmp_path / "new\nline").write_text("x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x")
    kinds = {special.path: special.kind for special in harvested(tmp_path).specials}
    assert kinds == {
        "fifo": "fifo",
        "sock": "socket",
        "one": "hardlink",
        "two": "hardlink",
        "sub/.git": "nested-git",
        "gitfile/.git": "nested-git",
        "hex:" + b".Git".hex(): "name",
        "hex:" + b"new\nline".hex(): "name",
        "hex:ff": "name",
    }


def test_a_link_in_place_of_a_directory_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "dir").symlink_to(outside)
    assert {path: file.data for path, file in harvested(root).tree.items()} == {"dir": str(outside).encode()}


def test_depth_is_bounded(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 80)
    deep.mkdir(parents=True)
    (deep / "bottom").write_text("x")
    tree = harvested(tmp_path)
    assert tree.tree == {}
    assert [special.kind for special in tree.specials] == ["name"]


@pytest.mark.parametrize("limits", [{"entries": 2}, {"file_bytes": 5}, {"stream_bytes": 500}])
def test_each_limit_cuts_the_tree_and_says_so(tmp_path: Path, limits: dict[str, int]) -> None:
    for number in range(5):
        (tmp_path / f"f{number}").write_bytes(b"x" * (6 if number == 2 else 1))
    tree = harvested(tmp_path, **limits)
    assert tree.truncated
    assert 0 < len(tree.tree) < 5


@pytest.mark.parametrize(
    "name",
    ["a", "a b", "é", ".gitignore", "git~1", ".GIT", ".git ", ".g\u200cit", ".git::$X", "a\\b", "a\x01", "x" * 255],
)
def test_the_guest_and_the_controller_agree_on_names(name: str) -> None:
    assert is_plain(name.encode()) is (path_fault(name) is None)
