"""Files of this machine: the DurableFiles port (temporary name, fsync, rename, fsync of the directory), and digests."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from controller.domain.ids import Digest
from controller.errors import DiskFull, InvalidInput


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
                if _read_regular(path, len(data), path) != data:
                    raise
            finally:
                temporary.unlink()
            sync_directory(path.parent)

    def read_directory(self, path: Path, *, bytes_max: int) -> dict[str, bytes]:
        if not path.is_dir():
            raise InvalidInput(f"{path} is not a directory")
        with _io_errors(path):
            found: dict[str, bytes] = {}
            left = bytes_max
            for entry, name in _walk(path, PurePosixPath()):
                found[name] = _read_regular(Path(entry.path), left, path)
                left -= len(found[name])
            return found


def _walk(directory: Path, prefix: PurePosixPath) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Everything below that is not a directory, in byte order. Directories are entered only when they are no links."""
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    for entry in ordered:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), prefix / entry.name)
        else:
            yield entry, str(prefix / entry.name)


def _read_regular(path: Path, bytes_max: int, root: Path) -> bytes:
    """Checked on the open descriptor, so that the file can't be exchanged between the check and the reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput(f"{path} is not a regular file")
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise InvalidInput(f"{root} holds more bytes than the limit allows")
    return data


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
