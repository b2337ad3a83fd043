"""Print one regular file, refusing every trick a hostile process can play with a path. Standard library only, 3.9+.

Usage: read_regular.py ABSOLUTE_PATH BYTES_MAX. No component may be a symbolic link; the file must be regular and
have one link. Exit codes: 0 printed, 3 absent or not such a file, 4 larger than BYTES_MAX.
"""

from __future__ import annotations

import os
import stat
import sys

ABSENT, TOO_LARGE = 3, 4
CHUNK_BYTES = 1 << 16


def open_regular(path: str) -> int:
    """A descriptor of the file, opened component by component. Raises OSError when one is not what it must be."""
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or not parts or any(part in (".", "..") for part in parts):
        raise OSError("not a plain absolute path")
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    finally:
        os.close(directory)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(file)
        raise OSError("not a regular file with one link")
    return file


def main(path: str, bytes_max: int) -> int:
    """Print the file; the exit code says what happened."""
    try:
        file = open_regular(path)
    except OSError as error:
        print(error, file=sys.stderr)
        return ABSENT
    left = bytes_max
    with os.fdopen(file, "rb") as source:
        while True:
            chunk = source.read(min(CHUNK_BYTES, left + 1))
            if chunk == b"":
                return 0
            if len(chunk) > left:
                return TOO_LARGE
            left -= len(chunk)
            sys.stdout.buffer.write(chunk)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
