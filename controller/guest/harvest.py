"""Walk what the harness left and write it down as `fairtrial.tree/1`, never following a link.

Runs when every process of the harness is dead, so nothing moves under the walk. Every directory is opened relative to
the one above it and without following links; every file's bytes come from a descriptor that was checked first.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Iterator

SCHEMA = "fairtrial.tree/1"
PATH_BYTES_MAX, COMPONENT_BYTES_MAX, DEPTH_MAX = 1024, 255, 64
CHUNK_BYTES = 1 << 20
ROOT_GIT = b".git"

# Code points that HFS+ leaves out of comparisons, so that a name with them stands for `.git` there.
HFS_IGNORED = frozenset([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF, 0xAD, 0x34F])


class TooLarge(Exception):
    """The workspace holds more than the limits allow."""


class Limits:
    """Caps of one harvest: bytes of the stream and of all contents, entries, bytes of one file."""

    def __init__(self, stream_bytes: int, entries: int, file_bytes: int) -> None:
        self.stream_bytes = stream_bytes
        self.entries = entries
        self.file_bytes = file_bytes


def harvest(root: str, limits: Limits) -> tuple[bytes, bool]:
    """The stream of the directory `root`, and whether it was cut short by a limit."""
    lines = [_line({"schema": SCHEMA})]
    room = limits.stream_bytes - len(lines[0]) - 128
    truncated = False
    entries = 0
    try:
        for fields in walk(root, limits):
            line = _line(fields)
            room -= len(line)
            if room < 0 or entries >= limits.entries:
                raise TooLarge
            lines.append(line)
            entries += 1
    except TooLarge:
        truncated = True
    end: dict[str, object] = {"end": True, "entries": entries}
    if truncated:
        end["truncated"] = True
    lines.append(_line(end))
    return b"".join(lines), truncated


def walk(root: str, limits: Limits) -> Iterator[dict[str, object]]:
    """Entries in byte order of their paths, the root's `.git` left out. Raises TooLarge for an oversized file."""
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    stack: list[tuple[bytes, int, list[bytes]]] = [(b"", top, _ordered(top))]
    try:
        while stack:
            prefix, directory, names = stack[-1]
            if not names:
                os.close(directory)
                stack.pop()
                continue
            name = names.pop()
            path = prefix + name
            if path == ROOT_GIT:
                continue
            below = _enter(directory, name, path, len(stack))
            if isinstance(below, int):
                stack.append((path + b"/", below, _ordered(below)))
            elif below is not None:
                yield below
            else:
                yield _entry(directory, name, path, limits)
    finally:
        for _, directory, _ in stack:
            os.close(directory)


def _enter(directory: int, name: bytes, path: bytes, depth: int) -> int | dict[str, object] | None:
    """A directory to walk as a descriptor, one that is not walked as its entry, or None for what is no directory."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return special(path, "unreadable")
    if not stat.S_ISDIR(status.st_mode):
        return None
    if name == b".git":
        return special(path, "nested-git")
    if depth >= DEPTH_MAX or not is_plain(name):
        return special(path, "name")
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return special(path, "unreadable")


def _entry(directory: int, name: bytes, path: bytes, limits: Limits) -> dict[str, object]:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    mode = status.st_mode
    kind = _special_kind(mode)
    if kind is None and name == b".git":
        kind = "nested-git"
    if kind is None and not (is_plain(name) and len(path) <= PATH_BYTES_MAX):
        kind = "name"
    if kind is not None:
        return special(path, kind)
    try:
        if stat.S_ISLNK(mode):
            target = os.readlink(name, dir_fd=directory)
            return _file(path, "120000", target) if len(target) <= 4 * PATH_BYTES_MAX else special(path, "unreadable")
        if status.st_nlink != 1:
            return special(path, "hardlink")
        data = _read(directory, name, limits.file_bytes)
    except OSError:
        return special(path, "unreadable")
    return _file(path, "100755" if mode & stat.S_IXUSR else "100644", data)


def _special_kind(mode: int) -> str | None:
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        return "device"
    return None if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "unreadable"


def _read(directory: int, name: bytes, bytes_max: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    try:
        if os.fstat(file).st_size > bytes_max:
            raise TooLarge
        data = b""
        while True:
            chunk = os.read(file, CHUNK_BYTES)
            if not chunk:
                return data
            data += chunk
            if len(data) > bytes_max:
                raise TooLarge
    finally:
        os.close(file)


def _ordered(directory: int) -> list[bytes]:
    """Names from last to first, so that `pop` gives the byte order of full paths: a directory sorts as `name/`."""
    with os.scandir(directory) as found:
        names = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]
    ordered = sorted(names, key=lambda item: item[0] + b"/" if item[1] else item[0], reverse=True)
    return [name for name, _ in ordered]


def is_plain(name: bytes) -> bool:
    """True for a component that a tree of the controller may hold: printable Unicode, and `.git` to no system."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if len(name) > COMPONENT_BYTES_MAX or "\\" in text:
        return False
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
        return False
    seen = "".join(char for char in text if ord(char) not in HFS_IGNORED).casefold().split(":", 1)[0].rstrip(" .")
    return seen not in (".git", "git~1")


def special(path: bytes, kind: str) -> dict[str, object]:
    """The entry of something that is no file of a tree."""
    try:
        return (
            {"path": path.decode("utf-8"), "special": kind}
            if kind != "name"
            else {"path_hex": path.hex(), "special": kind}
        )
    except UnicodeDecodeError:
        return {"path_hex": path.hex(), "special": kind}


def _file(path: bytes, mode: str, data: bytes) -> dict[str, object]:
    return {
        "path": path.decode("utf-8"),
        "mode": mode,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "data": binascii.b2a_base64(data, newline=False).decode("ascii"),
    }


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"
