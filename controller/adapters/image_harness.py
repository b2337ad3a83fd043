"""Root file systems of harness containers: the shared toolbox, and one pinned harness below `/opt/harness`.

Packages come through this machine's npm and pip against the hashes of the recipe's lock; no install script is run.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from controller.adapters.image_bake import host_fetch_options, host_sources, run_step
from controller.domain.record import Record
from controller.errors import ImageRecipeFailed

Progress = Callable[[str, int, int], None]
RelativePath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9@_][A-Za-z0-9@._-]*(/[A-Za-z0-9@_][A-Za-z0-9@._-]*)*$")
]

PREFIX: Final = "opt/harness"
AGENT_UID: Final = 1000
WHEEL_PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")
STEPS: Final = 3

# Isolated mode and no PYTHONPATH: neither the task's files nor the harness's packages are seen by the other.
START_SCRIPT: Final = """#!/usr/bin/python3 -I
import runpy
import sys

sys.path.insert(0, "{lib}")
runpy.run_module("{module}", run_name="__main__", alter_sys=True)
"""


class ToolboxRecipe(Record):
    """`toolbox.toml`: what every harness finds in its container."""

    packages: list[str] = Field(min_length=1)
    user: str
    directories: list[RelativePath]


class HarnessRecipe(Record):
    """`<name>.toml`. The lock lies in the directory `<name>/` beside it."""

    kind: Literal["npm", "pypi"]
    package: str
    version: str
    keep: dict[RelativePath, RelativePath] = Field(
        default_factory=dict
    )  # npm: installed path -> path below /opt/harness
    discard: list[RelativePath] = Field(default_factory=list)  # pypi: below the installed packages
    programs: dict[str, RelativePath] = Field(min_length=1)


def harness_names(recipe_dir: Path) -> tuple[str, ...]:
    """The harness recipes of a directory, in byte order: `harness-codex`, ..."""
    return tuple(sorted(path.stem for path in recipe_dir.glob("harness-*.toml")))


def recipe_inputs(name: str, recipe_dir: Path) -> tuple[Path, ...]:
    """Every file that decides the root file system of that name, for the recipe digest."""
    lock = sorted(path for path in (recipe_dir / name).rglob("*") if path.is_file())
    return (recipe_dir / "toolbox.toml", recipe_dir / f"{name}.toml", *lock)


def build_harness_rootfs(name: str, recipe_dir: Path, work_dir: Path, progress: Progress, log: Path) -> Path:
    """Build `work_dir/<name>/rootfs.tar` and return its path; files belong to root. Needs root.

    The toolbox is made once per work directory, in `work_dir/toolbox`, and shared.
    `progress` is told (step, done, total). Raises ImageRecipeFailed naming the recipe or the log.
    """
    recipe = read_harness_recipe(recipe_dir / f"{name}.toml")
    progress("toolbox", 0, STEPS)
    toolbox = _toolbox(recipe_dir, work_dir, log)
    progress(name, 1, STEPS)
    target = work_dir / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    prefix = toolbox / PREFIX
    _empty(prefix)
    fill = _fill_npm if recipe.kind == "npm" else _fill_pypi
    fill(recipe, recipe_dir / name, target / "install", toolbox, log)
    progress(f"{name}: archive", 2, STEPS)
    tar = target / "rootfs.tar"
    run_step(["tar", "--create", "--numeric-owner", "--sort=name", "-C", str(toolbox), "-f", str(tar), "."], log=log)
    _empty(prefix)
    shutil.rmtree(target / "install", ignore_errors=True)
    progress(name, STEPS, STEPS)
    return tar


def read_harness_recipe(path: Path) -> HarnessRecipe:
    """Parse a harness recipe. Raises ImageRecipeFailed naming the file and the fault."""
    try:
        return HarnessRecipe.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ImageRecipeFailed(f"{path}: {error}") from error


def _toolbox(recipe_dir: Path, work_dir: Path, log: Path) -> Path:
    root, ready = work_dir / "toolbox", work_dir / "toolbox.ready"
    if ready.exists():
        return root
    path = recipe_dir / "toolbox.toml"
    try:
        recipe = ToolboxRecipe.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ImageRecipeFailed(f"{path}: {error}") from error
    shutil.rmtree(root, ignore_errors=True)
    work_dir.mkdir(parents=True, exist_ok=True)
    suite, sources = host_sources()
    command = ["mmdebstrap", "--mode=root", "--variant=essential", "--format=directory", "--architectures=amd64"]
    command += [f"--aptopt={option}" for option in ('APT::Install-Recommends "false"', *host_fetch_options())]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")]
    command += [f"--include={','.join(recipe.packages)}", suite, str(root), *map(str, sources)]
    run_step(command, log=log)
    _prepare(root, recipe)
    ready.touch()
    return root


def _prepare(root: Path, recipe: ToolboxRecipe) -> None:
    """One unprivileged user, no resolver, no leftovers of the installation."""
    user = recipe.user
    for name, line in (
        ("passwd", f"{user}:x:{AGENT_UID}:{AGENT_UID}::/home/{user}:/bin/bash"),
        ("group", f"{user}:x:{AGENT_UID}:"),
    ):
        with (root / "etc" / name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    for directory in recipe.directories:
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "etc/hostname").write_text("harness\n", encoding="utf-8")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    resolver = root / "etc/resolv.conf"
    resolver.unlink(missing_ok=True)
    resolver.touch()
    names = root / "etc/nsswitch.conf"
    lines = names.read_text(encoding="utf-8").splitlines() if names.exists() else []
    kept = [line for line in lines if not line.startswith("hosts:")]
    names.write_text("\n".join([*kept, "hosts: files", ""]), encoding="utf-8")
    for leftover in ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/lintian"):
        _empty(root / leftover)


def _fill_npm(recipe: HarnessRecipe, lock: Path, install: Path, toolbox: Path, log: Path) -> None:
    install.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, install / name)
    command = ["npm", "ci", "--prefix", str(install), "--ignore-scripts", "--no-audit", "--no-fund"]
    run_step([*command, "--os=linux", "--cpu=x64"], log=log)
    prefix = toolbox / PREFIX
    for source, destination in recipe.keep.items():
        path = install / source
        if not path.exists():
            raise ImageRecipeFailed(
                f"{lock.with_suffix('.toml')}: keep: {source} is not in {recipe.package} {recipe.version}"
            )
        (prefix / destination).parent.mkdir(parents=True, exist_ok=True)
        run_step(["cp", "-r", "--no-preserve=ownership", str(path), str(prefix / destination)], log=log)
    bin_dir = prefix / "bin"
    bin_dir.mkdir()
    for program, target in recipe.programs.items():
        (bin_dir / program).symlink_to(PurePosixPath("..") / target)


def _fill_pypi(recipe: HarnessRecipe, lock: Path, install: Path, toolbox: Path, log: Path) -> None:
    python = (toolbox / "usr/bin/python3").readlink().name
    prefix = toolbox / PREFIX
    packages = prefix / "lib"
    platforms = [f"--platform={platform}" for platform in WHEEL_PLATFORMS]
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += ["--no-compile", "--implementation=cp", f"--python-version={python.removeprefix('python')}", *platforms]
    run_step([*command, f"--target={packages}", f"--requirement={lock / 'requirements.lock'}"], log=log)
    for path in recipe.discard:
        shutil.rmtree(packages / path, ignore_errors=True)
    shutil.rmtree(packages / "bin", ignore_errors=True)  # start scripts that name the building machine's Python
    for own in sorted((lock / "modules").glob("*.py")):  # ours: what points a client without a setting at the meter
        shutil.copyfile(own, packages / own.name)
    # Compiled now: the root is read-only during an attempt, and compiling takes a minute under emulation.
    compile_all = ["python3", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    run_step(["chroot", str(toolbox), *compile_all, f"/{PREFIX}/lib"], log=log)
    bin_dir = prefix / "bin"
    bin_dir.mkdir()
    for program, module in recipe.programs.items():
        script = bin_dir / program
        script.write_text(START_SCRIPT.format(lib=f"/{PREFIX}/lib", module=module), encoding="utf-8")
        script.chmod(0o755)


def _empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
