"""Only a regular file with one link and a plain path is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controller.guest import read_regular


def run(path: str, bytes_max: int) -> tuple[int, bytes]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", read_regular.__file__, path, str(bytes_max)], capture_output=True, check=False
    )
    return done.returncode, done.stdout


def test_a_file_is_printed_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "file"
    file.write_bytes(b"x" * 70_000)
    assert run(str(file), 70_000) == (0, b"x" * 70_000)
    assert run(str(file), 69_999)[0] == read_regular.TOO_LARGE
    assert run(str(file.with_name("absent")), 10)[0] == read_regular.ABSENT


@pytest.mark.parametrize("trick", ["link", "parent", "hardlink", "fifo", "directory", "device", "relative", "dots"])
def test_every_trick_is_refused(tmp_path: Path, trick: str) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "real" / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(root / "real" / "secret")
    (root / "parent").symlink_to(root / "real")
    (root / "hardlink").hardlink_to(root / "real" / "secret")
    os.mkfifo(root / "fifo")
    path = {
        "parent": f"{root}/parent/secret",
        "directory": f"{root}/real",
        "device": "/dev/zero",
        "relative": "real/secret",
        "dots": f"{root}/real/../real/secret",
    }.get(trick, f"{root}/{trick}")
    with pytest.raises(OSError):
        os.close(read_regular.open_regular(path))
