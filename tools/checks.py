#!/usr/bin/env python3
"""`make test`: every check in order of cost. The last lane is pytest, whose closing line ends the output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
LANES = (
    ("formatting", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
    ("types", ["mypy"]),
    ("import contracts", ["lint-imports", "--no-cache"]),
    ("machine images", ["python", "tools/bake.py"]),
    ("tests", ["pytest", "-m", "not slow", *sys.argv[1:]]),
)


def main() -> int:
    for name, command in LANES:
        print(f"== {name}: {' '.join(command)}", flush=True)
        code = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT).returncode
        if code:
            print(f"== {name} failed", file=sys.stderr)
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
