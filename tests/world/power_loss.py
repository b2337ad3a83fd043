"""What SQLite tells the disk, and every file that a power cut could leave of it.

The default VFS of the very library that `sqlite3` uses is told to open files with our own write, truncate and sync
methods; each notes what it does and calls the original. A write is durable once its file was synced; until then any of
its sectors may reach the disk, in any order, or not.
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

SECTOR = 512

_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
# SQLite keeps the pointer to the name while the file is open, so it must be passed on as it came, not as a copy.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)


class _Methods(Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", c_void_p * 13),
    ]


class _File(Structure):
    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(Structure):
    """The head of sqlite3_vfs."""

    _fields_ = [
        ("version", c_int),
        ("os_file_bytes", c_int),
        ("path_bytes_max", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
    ]


@dataclass(frozen=True)
class Written:
    """Bytes handed to the system; they may be lost until the file's next sync."""

    path: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncated:
    path: str
    length: int


@dataclass(frozen=True)
class Synced:
    path: str


@dataclass(frozen=True)
class Deleted:
    """The file is gone for good: the next new file's first sync makes its directory durable, too."""

    path: str


@dataclass(frozen=True)
class Acknowledged:
    """What the ledger told its caller by now: how many calls have returned."""

    calls: int


Event = Written | Truncated | Synced | Deleted | Acknowledged


@contextlib.contextmanager
def recording(events: list[Event]) -> Iterator[None]:
    """Note what SQLite does to the files that are opened in here, for as long as they are open in here."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None).contents
    plain = _Open(ctypes.cast(vfs.open, c_void_p).value or 0)
    plain_delete = _Delete(ctypes.cast(vfs.delete, c_void_p).value or 0)
    kept: list[Any] = []

    def opened(itself: int, name: int | None, file: int, flags: int, out: int) -> int:
        code: int = plain(itself, name, file, flags, out)
        if code == 0 and name is not None:
            kept.append(_noting(ctypes.string_at(name).decode(), ctypes.cast(file, POINTER(_File)).contents, events))
        return code

    def deleted(itself: int, name: bytes, sync: int) -> int:
        events.append(Deleted(name.decode()))
        return int(plain_delete(itself, name, sync))

    vfs.open, vfs.delete = _Open(opened), _Delete(deleted)
    try:
        yield
    finally:
        vfs.open, vfs.delete = plain, plain_delete


def _noting(path: str, file: Any, events: list[Event]) -> tuple[Any, ...]:
    real = file.methods.contents
    own = _Methods.from_buffer_copy(real)

    def write(itself: int, data: int, amount: int, offset: int) -> int:
        events.append(Written(path, offset, ctypes.string_at(data, amount)))
        return int(real.write(itself, data, amount, offset))

    def truncate(itself: int, length: int) -> int:
        events.append(Truncated(path, length))
        return int(real.truncate(itself, length))

    def sync(itself: int, flags: int) -> int:
        code = int(real.sync(itself, flags))
        if code == 0:
            events.append(Synced(path))
        return code

    own.write, own.truncate, own.sync = _Write(write), _Truncate(truncate), _Sync(sync)
    file.methods = ctypes.pointer(own)
    return own, real


class Disk:
    """The files as they are for certain, and the writes that a power cut may still take."""

    def __init__(self) -> None:
        self._durable: dict[str, bytes] = {}
        self._pending: dict[str, list[Written | Truncated]] = {}
        self.acknowledged = 0

    def see(self, event: Event) -> None:
        """Let one event happen."""
        if isinstance(event, Acknowledged):
            self.acknowledged = event.calls
        elif isinstance(event, Deleted):
            self._durable.pop(event.path, None)
            self._pending.pop(event.path, None)
        elif isinstance(event, Synced):
            self._durable[event.path] = self._image(event.path, lambda: True)
            self._pending[event.path] = []
        else:
            self._pending.setdefault(event.path, []).append(event)

    def whole(self) -> Mapping[str, bytes]:
        """The files when everything reached the disk."""
        return self._images(lambda: True)

    def bare(self) -> Mapping[str, bytes]:
        """The files when nothing reached the disk but what was synced."""
        return self._images(lambda: False)

    def torn(self, sectors: int) -> Mapping[str, bytes]:
        """The files when the first so many of the unsynced sectors reached the disk, and no others."""
        left = iter(range(sectors))
        return self._images(lambda: next(left, None) is not None)

    def scattered(self, chance: Random) -> Mapping[str, bytes]:
        """The files when each sector reached the disk or not, by chance."""
        return self._images(lambda: chance.random() < 0.5)

    def pending_sectors(self) -> int:
        """How many sectors, and truncations, a power cut may take now."""
        return sum(
            1 if isinstance(event, Truncated) else len(_sectors(event))
            for events in self._pending.values()
            for event in events
        )

    def _images(self, arrives: Callable[[], bool]) -> Mapping[str, bytes]:
        return {path: self._image(path, arrives) for path in sorted({*self._durable, *self._pending})}

    def _image(self, path: str, arrives: Callable[[], bool]) -> bytes:
        image = bytearray(self._durable.get(path, b""))
        for event in self._pending.get(path, []):
            if isinstance(event, Truncated):
                if arrives():
                    del image[event.length :]
                continue
            for at, part in _sectors(event):
                if arrives():
                    image.extend(bytes(max(0, at + len(part) - len(image))))
                    image[at : at + len(part)] = part
        return bytes(image)


def _sectors(written: Written) -> list[tuple[int, bytes]]:
    """The parts of a write by the disk's sectors, each with its place in the file."""
    end = written.offset + len(written.data)
    starts = [written.offset, *range(written.offset // SECTOR * SECTOR + SECTOR, end, SECTOR)]
    return [
        (start, written.data[start - written.offset : stop - written.offset])
        for start, stop in zip(starts, [*starts[1:], end], strict=True)
    ]


def lay_down(files: Mapping[str, bytes], directory: Path) -> None:
    """Write an image into a directory, each file under its own name."""
    for path, data in files.items():
        (directory / Path(path).name).write_bytes(data)
