"""Hostile trees are one typed error each; honest ones come back as they were."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from controller.domain.limits import ArtifactLimits
from controller.domain.paths import path_fault
from controller.domain.tree import EXECUTABLE, REGULAR, SYMLINK, TreeFile
from controller.domain.tree_stream import HarvestedTree, Special, parse_tree_stream, write_tree_stream
from controller.errors import TreeRejected

LIMITS = ArtifactLimits(tree_bytes_max=4096, tree_entries_max=8, file_bytes_max=1024)
HEAD = {"schema": "fairtrial.tree/1"}


def entry(path: object, content: bytes = b"x", **changes: object) -> dict[str, object]:
    fields = {
        "path": path,
        "mode": REGULAR,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "data": base64.b64encode(content).decode(),
    }
    return fields | changes


def end(count: int, **changes: object) -> dict[str, object]:
    return {"end": True, "entries": count} | changes


def stream(*lines: object) -> bytes:
    return b"".join(line + b"\n" if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


def with_file(path: object, content: bytes = b"x", **changes: object) -> bytes:
    return stream(HEAD, entry(path, content, **changes), end(1))


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "only a header": stream(HEAD),
    "no header": stream(entry("a"), end(1)),
    "another schema": stream({"schema": "fairtrial.tree/2"}, end(0)),
    "a header with more": stream(HEAD | {"note": 1}, end(0)),
    "no line end": stream(HEAD) + json.dumps(end(0)).encode(),
    "something after the end": stream(HEAD, end(0), entry("a")),
    "two ends": stream(HEAD, end(0), end(0)),
    "a wrong count": stream(HEAD, entry("a"), end(2)),
    "a count that is true": stream(HEAD, entry("a"), end(1) | {"entries": True}),
    "an end that is 1": stream(HEAD, {"end": 1, "entries": 0}),
    "truncated false": stream(HEAD, end(0, truncated=False)),
    "an end with more": stream(HEAD, end(0, note="")),
    "a list": stream(HEAD, [1], end(0)),
    "deep nesting": stream(HEAD, b"[" * 5000 + b"]" * 5000, end(0)),
    "an endless number": stream(HEAD, b'{"path":"a","size":' + b"9" * 5000 + b"}", end(1)),
    "a repeated key": stream(HEAD, b'{"path":"a","path":"b","special":"fifo"}', end(1)),
    "not UTF-8": stream(HEAD, b'{"path":"\xff","special":"fifo"}', end(1)),
    "a float": with_file("a", size=1.0),
    "not a number": stream(HEAD, b'{"path":"a","size":NaN}', end(1)),
    "a lone surrogate": with_file("\ud800"),
    "parent": with_file("../a"),
    "directory that ends with a space": with_file("a /b"),
    "inner parent": with_file("a/../b"),
    "absolute": with_file("/etc/passwd"),
    "empty path": with_file(""),
    "empty component": with_file("a//b"),
    "dot component": with_file("./a"),
    "final slash": with_file("a/"),
    "a NUL": with_file("a\0b"),
    "a line break": with_file("a\nb"),
    "a line separator": with_file("a\u2028b"),
    "a backslash": with_file("a\\b"),
    "git directory": with_file(".git/config"),
    "git directory in capitals": with_file("x/.GIT/hooks/post-checkout"),
    "git directory for HFS": with_file(".g\u200cit/config"),
    "git directory for NTFS": with_file("git~1/config"),
    "git directory with a dot": with_file(".git./config"),
    "git directory as a stream": with_file(".git::$INDEX_ALLOCATION/config"),
    "git file": with_file("sub/.git"),
    "a long path": with_file("/".join(["d" * 200] * 6)),
    "a long name": with_file("n" * 256),
    "a deep path": with_file("/".join(["d"] * 70)),
    "a path that is a list": with_file(["a"]),
    "a submodule": with_file("a", mode="160000"),
    "a set-uid mode": with_file("a", mode="104755"),
    "a mode that is a number": with_file("a", mode=100644),
    "a wrong size": with_file("a", size=2),
    "a wrong digest": with_file("a", sha256="0" * 64),
    "base64 with a line break": with_file("a", data="eA==\n"),
    "base64 that is not canonical": with_file("a", data="eB=="),
    "base64 of another alphabet": with_file("a", b"\xfb\xff", data="-_8="),
    "base64 without padding": with_file("a", data="eA"),
    "data that is null": with_file("a", data=None),
    "a missing field": stream(HEAD, {"path": "a", "mode": REGULAR}, end(1)),
    "a field too many": with_file("a", owner=0),
    "an empty link": with_file("a", b"", mode=SYMLINK),
    "a link with a NUL": with_file("a", b"b\0", mode=SYMLINK),
    "twice the same": stream(HEAD, entry("a"), entry("a"), end(2)),
    "wrong order": stream(HEAD, entry("b"), entry("a"), end(2)),
    "same but for case": stream(HEAD, entry("Tests.py"), entry("tests.py"), end(2)),
    "same but for form": stream(HEAD, entry("e\u0301"), entry("\u00e9"), end(2)),
    "directories but for case": stream(HEAD, entry("Tests/a"), entry("tests/b"), end(2)),
    "file and directory": stream(HEAD, entry("a"), entry("a/b"), end(2)),
    "file and directory but for case": stream(HEAD, entry("A"), entry("a/b"), end(2)),
    "too many entries": stream(HEAD, *(entry(f"{index}") for index in range(9)), end(9)),
    "a file that is too large": with_file("a", b"x" * 1025),
    "files that are too large together": stream(HEAD, *(entry(f"{n}", b"x" * 1000) for n in range(5)), end(5)),
    "an unknown special": stream(HEAD, {"path": "a", "special": "door"}, end(1)),
    "a special with content": with_file("a", special="fifo"),
    "a special without a path": stream(HEAD, {"special": "fifo"}, end(1)),
    "hexadecimal in capitals": stream(HEAD, {"path_hex": "FF", "special": "name"}, end(1)),
    "hexadecimal with blanks": stream(HEAD, {"path_hex": "ff ff", "special": "name"}, end(1)),
    "hexadecimal of nothing": stream(HEAD, {"path_hex": "", "special": "name"}, end(1)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_stream_is_rejected_with_its_line(name: str) -> None:
    with pytest.raises(TreeRejected, match=r"tree\.jsonl line \d+: "):
        parse_tree_stream(HOSTILE[name], LIMITS)


def test_a_stream_beyond_every_limit_is_not_even_read() -> None:
    with pytest.raises(TreeRejected, match="more than the"):
        parse_tree_stream(b"x" * 100_000, LIMITS)


def test_an_honest_tree_comes_back() -> None:
    tree = {
        "src/ü.py": TreeFile(mode=REGULAR, data=b"\0\xff"),
        "a b.sh": TreeFile(mode=EXECUTABLE, data=b""),
        "link": TreeFile(mode=SYMLINK, data=b"../elsewhere"),
        "src-x/y": TreeFile(mode=REGULAR, data=b"order: '-' sorts before '/'"),
    }
    specials = (Special(path="run/pipe", kind="fifo"), Special(path="hex:ff", kind="name"))
    parsed = parse_tree_stream(write_tree_stream(tree, specials, truncated=True), LIMITS)
    assert parsed == HarvestedTree(tree=tree, specials=specials, truncated=True)


def test_ordinary_names_stay_allowed() -> None:
    names = (".gitignore", ".github/workflows/a.yml", "git", "x.git", "a..b", "...", "naïve file (1).txt", " tests/x ")
    assert [path_fault(name) for name in names] == [None] * len(names)
