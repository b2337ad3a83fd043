"""Files of this machine: the DurableFiles port (temporary name, fsync, rename, fsync of the directory), and digests."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from controller.domain.ids import Digest
from controller.errors import DiskFull, InvalidInput
from controller.ports.named_files import read_named


class LocalFiles:
    """Files of this machine. A crash leaves the whole directory or none of it, never a half."""

    def create_directory(self, path: Path, files: Mapping[str, bytes]) -> None:
        if os.path.lexists(path):
            raise InvalidInput(
                f"{path} exists; it is never overwritten", remedy="Name a directory that does not exist."
            )
        with _io_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
            try:
                for name, data in files.items():
                    _write_below(temporary, name, data)
                for directory in (*(p for p in temporary.rglob("*") if p.is_dir()), temporary):
                    sync_directory(directory)
                temporary.chmod(0o755)
                temporary.rename(path)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            sync_directory(path.parent)

    def create_file(self, path: Path, data: bytes) -> None:
        with _io_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
            temporary = Path(name)
            try:
                _write(descriptor, data)
                temporary.chmod(0o644)
                os.link(temporary, path)
            except FileExistsError:
                if _read_within(path, len(data), path) != data:
                    raise
            finally:
                temporary.unlink()
            sync_directory(path.parent)

    def read_directory(self, path: Path, *, bytes_max: int) -> dict[str, bytes]:
        with _io_errors(path):
            if not path.is_dir():
                raise InvalidInput(f"{path} is not a directory")
            found: dict[str, bytes] = {}
            left = bytes_max
            for entry, name in _walk(path):
                found[name] = _read_within(Path(entry.path), left, path)
                left -= len(found[name])
            return found


def _walk(root: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Everything below that is not a directory, in byte order. Directories are entered only when they are no links.

    A list instead of recursion: a directory may lie deeper than Python's stack.
    """
    waiting: list[tuple[os.DirEntry[str], str]] = _entries(root, "")
    while waiting:
        entry, name = waiting.pop()
        if entry.is_dir(follow_symlinks=False):
            waiting += _entries(Path(entry.path), f"{name}/")
        else:
            yield entry, name


def _entries(directory: Path, prefix: str) -> list[tuple[os.DirEntry[str], str]]:
    """The directory's entries with their names from the root, the first of them last."""
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=lambda entry: os.fsencode(entry.name), reverse=True)
    return [(entry, prefix + entry.name) for entry in ordered]


def _read_within(path: Path, bytes_max: int, root: Path) -> bytes:
    try:
        return read_named(path, bytes_max=bytes_max, follow=False)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InvalidInput(f"{root} holds more bytes than the limit allows") from error
        raise InvalidInput(f"{path}: {error.strerror}") from error


def _write_below(root: Path, name: str, data: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name != "/".join(parts) or ".." in parts or name.startswith("/"):
        raise InvalidInput(f"{name!r} is not a plain relative file name")
    path = root.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), data)


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def file_digest(path: Path) -> Digest:
    """`sha256:<hex>` of a file of any size. Raises OSError."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _io_errors(path: Path) -> Iterator[None]:
    """Give the operating system's errors the names of the error tree."""
    try:
        yield
    except FileExistsError as error:
        raise InvalidInput(f"{path} exists; it is never overwritten") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{path}: no room on the disk") from error
        if error.errno == errno.ENOTEMPTY:
            raise InvalidInput(f"{path} exists; it is never overwritten") from error
        raise InvalidInput(f"{path}: {error.strerror}") from error
