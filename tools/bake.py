#!/usr/bin/env python3
"""Bake the images as root, which owning the files of a root file system takes, and give the result to the caller.

Root runs the bake directly; anybody else goes through sudo. Everything after the bake runs as the caller.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".venv" / "bin" / "fairtrial"
STATE = Path(os.environ.get("FAIRTRIAL_STATE_DIR", ROOT / ".state"))
KEPT = ("PATH", "FAIRTRIAL_STATE_DIR", "http_proxy", "https_proxy", "no_proxy")


def main() -> int:
    """The bake's exit code."""
    if os.geteuid() == 0:
        return subprocess.run([str(PROGRAM), "images", "build"], stdout=subprocess.DEVNULL).returncode
    baked = subprocess.run([str(PROGRAM), "images", "build"], capture_output=True)
    if baked.returncode == 0:  # nothing had to be baked
        return 0
    if shutil.which("sudo") is None:
        sys.stderr.buffer.write(baked.stderr)
        sys.stderr.write(
            f"\nThere is no sudo here. As root, run: {PROGRAM} images build && chown -R {os.getuid()} {STATE}\n"
        )
        return baked.returncode
    keep = [f"{name}={os.environ[name]}" for name in KEPT if name in os.environ]
    code = subprocess.run(["sudo", "env", *keep, str(PROGRAM), "images", "build"], stdout=subprocess.DEVNULL).returncode
    owner = f"{os.getuid()}:{os.getgid()}"
    subprocess.run(["sudo", "chown", "-R", owner, str(STATE)], check=code == 0)
    return code


if __name__ == "__main__":
    sys.exit(main())
