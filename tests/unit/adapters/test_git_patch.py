"""Patches are decided on the tree they give; the text of a stranger's patch is never believed."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from controller.adapters.git_patch import GitPatches
from controller.domain.limits import ArtifactLimits
from controller.domain.tree import EXECUTABLE, REGULAR, SYMLINK, TreeFile, changed_paths
from controller.errors import ControllerFault, InvalidInput
from tests.world.tasks import file

PATCHES = GitPatches()
BASE = {
    "src/a.py": file("one\ntwo\nthree\n"),
    "tests/test_a.py": file("assert True\n"),
    ".gitattributes": file("*.txt text eol=crlf\n*.py -diff\n* ident\n"),
    "notes.txt": file("unix\n$Id$\n"),
    "run.sh": file("#!/bin/sh\n", EXECUTABLE),
    "link": file("src/a.py", SYMLINK),
}


def patch(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def new_file(path: str, mode: str = "100644", text: str = "x") -> bytes:
    return patch(
        f"diff --git a/{path} b/{path}",
        f"new file mode {mode}",
        "--- /dev/null",
        f"+++ b/{path}",
        "@@ -0,0 +1 @@",
        f"+{text}",
    )


CHANGE = ("@@ -1,3 +1,3 @@", "-one", "+ONE", " two", " three")

REFUSED: dict[str, bytes] = {
    "parent": new_file("../outside"),
    "absolute": new_file("/etc/outside"),
    "git directory": new_file(".git/hooks/pre-commit"),
    "git directory in capitals": new_file(".GIT/config"),
    "git directory for HFS": new_file(".g\u200cit/config"),
    "git directory for NTFS": new_file("git~1/config"),
    "nested git directory": new_file("x/.git/config"),
    "beyond a link": new_file("link/b"),
    "submodule": patch(
        "diff --git a/sub b/sub",
        "new file mode 160000",
        "--- /dev/null",
        "+++ b/sub",
        "@@ -0,0 +1 @@",
        f"+Subproject commit {'1' * 40}",
    ),
    "does not fit": patch("--- a/src/a.py", "+++ b/src/a.py", "@@ -1 +1 @@", "-other", "+ONE"),
    "partly does not fit": patch(
        "--- a/src/a.py", "+++ b/src/a.py", *CHANGE, "--- a/run.sh", "+++ b/run.sh", "@@ -1 +1 @@", "-no", "+x"
    ),
    "makes what is there": new_file("run.sh"),
    "changes what is not there": patch("--- a/none", "+++ b/none", *CHANGE),
    "line break in a name": patch(
        'diff --git "a/a\\nb" "b/a\\nb"',
        "new file mode 100644",
        "--- /dev/null",
        '+++ "b/a\\nb"',
        "@@ -0,0 +1 @@",
        "+x",
    ),
    "directory but for case": new_file("Tests/test_b.py"),
    "file but for case": new_file("RUN.SH"),
    "prose": b"please set passed to true\n",
    "cut off": patch("--- a/src/a.py", "+++ b/src/a.py", "@@ -1,3 +1,3 @@", "-one"),
    "nothing but bytes": bytes(range(256)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_patch_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="patch"):
        PATCHES.apply_check(BASE, REFUSED[name])


def test_a_patch_is_what_it_changes_not_what_it_says() -> None:
    """The header names one file, the body another: git changes the latter, and that is what is seen."""
    liar = patch(
        "diff --git a/src/a.py b/src/a.py",
        "--- a/tests/test_a.py",
        "+++ b/tests/test_a.py",
        "@@ -1 +1 @@",
        "-assert True",
        "+pass",
    )
    assert changed_paths(BASE, PATCHES.apply_check(BASE, liar)) == ("tests/test_a.py",)


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        (
            ("diff --git a/tests/test_a.py b/x", "similarity index 100%", "rename from tests/test_a.py", "rename to x"),
            ("tests/test_a.py", "x"),
        ),
        (
            (
                "diff --git a/src/a.py b/conftest.py",
                "similarity index 100%",
                "copy from src/a.py",
                "copy to conftest.py",
            ),
            ("conftest.py",),
        ),
        (("diff --git a/src/a.py b/src/a.py", "old mode 100644", "new mode 100755"), ("src/a.py",)),
        (
            (
                "diff --git a/link b/link",
                "--- a/link",
                "+++ b/link",
                "@@ -1 +1 @@",
                "-src/a.py",
                "\\ No newline at end of file",
                "+/etc/passwd",
            ),
            ("link",),
        ),
    ],
)
def test_no_change_hides_from_the_tree(lines: tuple[str, ...], changed: tuple[str, ...]) -> None:
    assert changed_paths(BASE, PATCHES.apply_check(BASE, patch(*lines))) == changed


def test_odd_modes_become_ordinary_ones() -> None:
    after = PATCHES.apply_check(BASE, new_file("tool", "104755"))
    assert after["tool"].mode == EXECUTABLE


def test_attributes_of_the_tree_change_no_byte() -> None:
    """With `eol=crlf`, `ident` and `-diff` in the tree, bytes still go in and come out as they are."""
    after = {
        **BASE,
        "notes.txt": file("unix\n$Id$\nmore\n"),
        "src/a.py": file("ONE\r\n"),
        "data.txt": file(b"\0\r\n$Id: x$"),
    }
    made = PATCHES.make_patch(BASE, after)
    assert made.changed == ("data.txt", "notes.txt", "src/a.py")
    assert PATCHES.apply_check(BASE, made.data) == after
    assert b"-one" in made.data  # a text patch, although the tree says `-diff`


def test_a_small_patch_that_becomes_too_much_is_refused() -> None:
    bomb = PATCHES.make_patch(BASE, {**BASE, "zeros": file(b"\0" * 2**20)}).data
    assert len(bomb) < 2**13
    with pytest.raises(InvalidInput, match="over the limits"):
        GitPatches(limits=ArtifactLimits(tree_bytes_max=2**19)).apply_check(BASE, bomb)


def test_removed_links_and_odd_names_come_back() -> None:
    after = {path: content for path, content in BASE.items() if path != "link"}
    after |= {
        'quote " ü 名.txt': file("x"),
        " leading and trailing ": file(""),
        "-dash": file("x"),
        "bin": TreeFile(mode=REGULAR, data=bytes(range(256))),
    }
    made = PATCHES.make_patch(BASE, after)
    assert PATCHES.apply_check(BASE, made.data) == after
    assert made == PATCHES.make_patch(BASE, after)
    assert PATCHES.make_patch(after, after).data == b""


def test_an_unsafe_tree_never_reaches_git() -> None:
    with pytest.raises(ControllerFault, match="unsafe path"):
        PATCHES.make_patch(BASE, {**BASE, "../x": file("x")})


def test_hooks_and_configuration_of_the_user_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gitconfig"
    witness = tmp_path / "witness"
    config.write_text(
        f"[core]\n\tautocrlf = true\n\tfsmonitor = touch {witness}\n[diff]\n\texternal = touch {witness}\n"
    )
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(config))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {witness}")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    made = PATCHES.make_patch(BASE, {**BASE, "src/a.py": file("crlf\r\n")})
    assert PATCHES.apply_check(BASE, made.data)["src/a.py"].data == b"crlf\r\n"
    assert not witness.exists()


def test_the_workspace_is_one_clean_commit_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    base = {path: content for path, content in BASE.items() if path != ".gitattributes"}
    data = PATCHES.base_commit_tar(base)
    assert data == PATCHES.base_commit_tar(base)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(tmp_path, filter="data")

    def git(*arguments: str) -> str:
        return subprocess.check_output(["git", "-c", "safe.directory=*", *arguments], cwd=tmp_path, text=True)

    assert git("status", "--porcelain") == ""
    assert git("rev-list", "--all", "--count").strip() == "1"
    assert git("log", "--format=%an %ad", "--date=iso").strip() == "Task 2000-01-01 00:00:00 +0000"
    assert git("fsck", "--strict") == ""
