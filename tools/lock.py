#!/usr/bin/env python3
"""Re-make requirements.lock: every dependency of every supported Python, with hashes. Needs `uv` on PATH."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    command = ["uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--quiet", "--output-file", str(ROOT / "requirements.lock")]
    subprocess.run(command, input="\n".join(wanted).encode(), check=True)


if __name__ == "__main__":
    main()
