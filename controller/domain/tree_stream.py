"""The harvested tree as one file, format `fairtrial.tree/1`, parsed as if an enemy had written it.

    {"schema":"fairtrial.tree/1"}
    {"path":"src/a.py","mode":"100644","size":3,"sha256":"<hex>","data":"<base64>"}     modes 100644, 100755, 120000
    {"path":"run/pipe","special":"fifo"}                                                 anything that is not a file
    {"path_hex":"ff","special":"name"}                                                   a name that is not UTF-8
    {"end":true,"entries":3}                                                             or with "truncated":true

Entries stand in strictly ascending byte order of their paths. Every byte is checked before anything is built from it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final, Literal, NoReturn, get_args

from pydantic import Field

from controller.domain.json_files import once
from controller.domain.limits import ArtifactLimits
from controller.domain.paths import PATH_BYTES_MAX, PathSet
from controller.domain.record import Record
from controller.domain.tree import EXECUTABLE, REGULAR, SYMLINK, Tree, TreeFile
from controller.errors import TreeRejected

SCHEMA: Final = "fairtrial.tree/1"
SpecialKind = Literal["fifo", "socket", "device", "nested-git", "name", "hardlink", "unreadable"]

_LINE_OVERHEAD_BYTES: Final = 6 * PATH_BYTES_MAX + 512  # a path with every byte escaped, and the other fields
_FILE_KEYS: Final = frozenset({"path", "mode", "size", "sha256", "data"})
_MODES: Final = (REGULAR, EXECUTABLE, SYMLINK)


class Special(Record):
    """Something in the workspace that is not a regular file, a directory or a symbolic link with a usable name."""

    path: str  # for a name that is not UTF-8, its bytes in hexadecimal after `hex:`
    kind: SpecialKind


class HarvestedTree(Record):
    """What an attempt left in its workspace, its root `.git` aside."""

    tree: dict[str, TreeFile]
    specials: tuple[Special, ...] = Field(default=())
    truncated: bool = False


def parse_tree_stream(data: bytes, limits: ArtifactLimits) -> HarvestedTree:
    """The tree in `data`, decoded size at most `limits.tree_bytes_max`.

    Raises TreeRejected naming the line of the first fault.
    """
    bound = 2 * limits.tree_bytes_max + limits.tree_entries_max * 512 + _LINE_OVERHEAD_BYTES
    if len(data) > bound:
        raise TreeRejected(f"tree.jsonl: {len(data)} bytes are more than the {bound} that the limits allow")
    return _Parser(limits).parse(data)


def write_tree_stream(tree: Tree, specials: tuple[Special, ...] = (), *, truncated: bool = False) -> bytes:
    """The stream of a tree, in the one form that the parser accepts."""
    lines: list[tuple[bytes, dict[str, object]]] = []
    for path, file in tree.items():
        encoded = base64.b64encode(file.data).decode()
        digest = hashlib.sha256(file.data).hexdigest()
        fields = {"path": path, "mode": file.mode, "size": len(file.data), "sha256": digest, "data": encoded}
        lines.append((path.encode(), fields))
    for special in specials:
        if special.path.startswith("hex:"):
            raw = bytes.fromhex(special.path[4:])
            lines.append((raw, {"path_hex": raw.hex(), "special": special.kind}))
        else:
            lines.append((special.path.encode(), {"path": special.path, "special": special.kind}))
    lines.sort(key=lambda line: line[0])
    end: dict[str, object] = {"end": True, "entries": len(lines)}
    if truncated:
        end["truncated"] = True
    objects = [{"schema": SCHEMA}, *(fields for _, fields in lines), end]
    return b"".join(json.dumps(fields, separators=(",", ":")).encode() + b"\n" for fields in objects)


class _Parser:
    def __init__(self, limits: ArtifactLimits) -> None:
        self._limits = limits
        self._line = 0
        self._tree: dict[str, TreeFile] = {}
        self._specials: list[Special] = []
        self._paths = PathSet()
        self._previous = b""
        self._bytes = 0

    def parse(self, data: bytes) -> HarvestedTree:
        header = end = None
        for raw in self._raw_lines(data):
            fields = self._object(raw)
            if end is not None:
                self._reject("there is something after the end")
            if header is None:
                header = fields
                if fields != {"schema": SCHEMA}:
                    self._reject(f"the first line must be the schema {SCHEMA}")
            elif "end" in fields:
                end = fields
            elif "special" in fields:
                self._add_special(fields)
            else:
                self._add_file(fields)
        if end is None:
            self._reject("the last line, which counts the entries, is missing")
        return self._finish(end)

    def _raw_lines(self, data: bytes) -> Iterator[bytes]:
        line_max = 2 * self._limits.file_bytes_max + _LINE_OVERHEAD_BYTES
        start = 0
        while start < len(data):
            self._line += 1
            stop = data.find(b"\n", start, start + line_max)
            if stop < 0:
                self._reject(f"the line does not end within {line_max} bytes")
            yield data[start:stop]
            start = stop + 1

    def _object(self, raw: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(raw.decode(), object_pairs_hook=once, parse_constant=_refuse, parse_float=_refuse)
        except (ValueError, RecursionError) as error:
            self._reject(f"not strict JSON ({type(error).__name__})")
        if not isinstance(fields, dict):
            self._reject("not a JSON object")
        return fields

    def _add_special(self, fields: dict[str, Any]) -> None:
        kind = fields["special"]
        if not isinstance(kind, str) or kind not in get_args(SpecialKind):
            self._reject("unknown kind of special entry")
        if fields.keys() == {"path", "special"}:
            path = fields["path"]
            raw = self._encoded(path)
        elif fields.keys() == {"path_hex", "special"}:
            try:
                raw = bytes.fromhex(fields["path_hex"])
            except (TypeError, ValueError):
                self._reject("path_hex is not hexadecimal")
            if raw.hex() != fields["path_hex"]:
                self._reject("path_hex is not canonical")
            path = f"hex:{raw.hex()}"
        else:
            self._reject("a special entry has a `path` or a `path_hex`, and `special`")
        if not 0 < len(raw) <= 4 * PATH_BYTES_MAX:
            self._reject("the path of a special entry is empty or too long")
        self._enter(raw)
        self._specials.append(Special(path=path, kind=kind))  # type: ignore[arg-type]

    def _add_file(self, fields: dict[str, Any]) -> None:
        if fields.keys() != _FILE_KEYS:
            self._reject("a file has exactly path, mode, size, sha256 and data")
        path, mode, size = fields["path"], fields["mode"], fields["size"]
        raw = self._encoded(path)
        self._enter(raw)
        if fault := self._paths.add(path):
            self._reject(f"path {path[:200]!r}: {fault}")
        if mode not in _MODES:
            self._reject(f"mode {str(mode)[:20]!r} is none of {', '.join(_MODES)}")
        content = self._decoded(fields["data"])
        if type(size) is not int or size != len(content):
            self._reject("size is not the length of the data")
        if fields["sha256"] != hashlib.sha256(content).hexdigest():
            self._reject("sha256 is not the digest of the data")
        if mode == SYMLINK and (not content or b"\0" in content or len(content) > 4 * PATH_BYTES_MAX):
            self._reject("the target of a symbolic link is empty, too long or has a NUL")
        self._bytes += len(content)
        if self._bytes > self._limits.tree_bytes_max:
            self._reject(f"the files have more than {self._limits.tree_bytes_max} bytes together")
        self._tree[path] = TreeFile(mode=mode, data=content)

    def _decoded(self, text: object) -> bytes:
        if not isinstance(text, str):
            self._reject("data is not a string")
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._reject("data is not base64")
        if base64.b64encode(content).decode() != text:
            self._reject("data is not canonical base64")
        if len(content) > self._limits.file_bytes_max:
            self._reject(f"a file has more than {self._limits.file_bytes_max} bytes")
        return content

    def _encoded(self, path: object) -> bytes:
        if not isinstance(path, str):
            self._reject("path is not a string")
        try:
            return path.encode()
        except UnicodeEncodeError:
            self._reject("path is not valid Unicode")

    def _enter(self, raw: bytes) -> None:
        """Count an entry and hold the order, which also excludes repeated paths."""
        if raw <= self._previous:
            self._reject("paths are not in strictly ascending byte order")
        self._previous = raw
        if len(self._tree) + len(self._specials) >= self._limits.tree_entries_max:
            self._reject(f"there are more than {self._limits.tree_entries_max} entries")

    def _finish(self, end: dict[str, Any]) -> HarvestedTree:
        truncated = end.get("truncated", False)
        if end.keys() - {"truncated"} != {"end", "entries"} or end["end"] is not True:
            self._reject("the last line has exactly end, entries and possibly truncated")
        if "truncated" in end and truncated is not True:
            self._reject("truncated is given only when it is true")
        count = len(self._tree) + len(self._specials)
        if type(end["entries"]) is not int or end["entries"] != count:
            self._reject(f"the last line does not count the {count} entries before it")
        return HarvestedTree(tree=self._tree, specials=tuple(self._specials), truncated=truncated)

    def _reject(self, fault: str) -> NoReturn:
        raise TreeRejected(f"tree.jsonl line {self._line}: {fault}")


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not allowed")
