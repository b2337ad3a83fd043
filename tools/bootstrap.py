#!/usr/bin/env python3
"""Install what fairtrial needs: system packages with apt (through sudo when not root), Python packages into `.venv`.

Standard library only: it runs before anything is installed. Idempotent: a second run checks and returns at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "fairtrial-lock.sha256"

# Rootless containers on the host: crun refuses control groups of version 1 beside those of version 2, which runc takes.
RUNTIME = "crun" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "runc"
# Debian package by the program whose absence makes it necessary.
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "socat": "socat",
    "newuidmap": "uidmap",
    "podman": "podman",
    RUNTIME: RUNTIME,
    "git": "git",
    "npm": "npm",
    "initdb": "postgresql",
}
# And by the file: figures are drawn with this font, whatever else the system has.
FILES = {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": "fonts-dejavu-core"}


def fail(message: str, remedy: str) -> None:
    """Say what is wrong and what to do, and stop with the exit code of a missing program."""
    print(f"\nfairtrial setup: {message}\n  What to do: {remedy}", file=sys.stderr)
    sys.exit(80)


def find_program(name: str) -> str | None:
    """The program on PATH or in the system directories that a user's PATH often lacks."""
    versioned = map(str, Path("/usr/lib/postgresql").glob("*/bin"))  # Debian keeps a server's programs off the PATH
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *versioned))
    return shutil.which(name, path=path)


def install_system_packages() -> None:
    missing = sorted({package for program, package in PROGRAMS.items() if find_program(program) is None})
    missing += [package for file, package in FILES.items() if not Path(file).is_file()]
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        missing.append("python3-venv")
    if not missing:
        return
    command = " ".join(["apt-get install --no-install-recommends", *missing])
    if shutil.which("apt-get") is None:
        fail(
            f"this machine lacks {', '.join(missing)} and has no apt",
            "Install these programs with your own package tool.",
        )
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    if prefix and shutil.which("sudo") is None:
        fail(f"system packages are missing: {', '.join(missing)}", f"As root, run: {command}")
    print(f"fairtrial setup: installing system packages: {', '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    keep = ["env", "DEBIAN_FRONTEND=noninteractive"]
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        if subprocess.run(
            [*prefix, *keep, "apt-get", *arguments], env=environment, stdout=subprocess.DEVNULL
        ).returncode:
            fail(f"`apt-get {arguments[0]}` failed; its message stands above", f"Mend apt, or as root run: {command}")


def install_python_packages() -> None:
    wanted = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted and (VENV / "bin" / "fairtrial").exists():
        return
    print("fairtrial setup: installing Python packages from requirements.lock into .venv", flush=True)
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    locked = subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)])
    if locked.returncode:
        fail(
            "pip could not install the locked Python packages; its message stands above",
            "Check the package registry's address in your pip configuration, then run make again.",
        )
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
    STAMP.write_text(wanted)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  the one file that an older Python may get to run
        fail(f"Python {sys.version.split()[0]} is too old", "Use Python 3.11 or newer: make PYTHON=python3.12 demo")
    install_system_packages()
    install_python_packages()


if __name__ == "__main__":
    main()
