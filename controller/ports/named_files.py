"""The bytes of one file that a person or a round's directory names: never a wait, never more than is sensible.

A plain `read_bytes` hangs on a FIFO and takes all memory on a device. Stages and adapters read through this instead.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

NAMED_FILE_BYTES_MAX: Final = 512 * 2**20  # as much as a whole bundle may hold


def read_named(path: Path, *, bytes_max: int = NAMED_FILE_BYTES_MAX, follow: bool = True) -> bytes:
    """The whole file; a link to it is followed unless told otherwise.

    Raises OSError with the path, and a reason fit to be shown, also for what is no regular file or is too large.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "not a file name", repr(str(path)))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
        # Checked on the open descriptor, so that the file can't be exchanged between the check and the reading.
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        too_large = OSError(errno.EFBIG, f"larger than {bytes_max} bytes", str(path))
        if facts.st_size > bytes_max:
            raise too_large
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
        if data is None:  # a file of the kernel's that has nothing to say yet, such as /proc/kmsg
            raise BlockingIOError(errno.EAGAIN, "has nothing to read now", str(path))
        if len(data) > bytes_max:
            raise too_large
        return data
    finally:
        os.close(descriptor)
