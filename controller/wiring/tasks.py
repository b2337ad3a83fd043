"""Tasks: load one with its sources, qualify one, verify a patch against one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from controller.adapters.corpus_fs import load_task
from controller.adapters.git_patch import GitPatches
from controller.adapters.system_entropy import SystemEntropy
from controller.adapters.task_sources import TaskSources
from controller.domain.limits import SandboxLimits
from controller.domain.outcome import Verdict
from controller.domain.task import TaskBundle
from controller.domain.tree_stream import HarvestedTree
from controller.errors import RoundNotFound
from controller.ports.named_files import read_named
from controller.ports.pool import Pool, SandboxRole, SandboxSpec
from controller.settings import Settings
from controller.verify import Qualification, count_cases, qualify, verify
from controller.wiring.inputs import read_input
from controller.wiring.machines import make_pool, require_images

DIRECTORIES: Final = "tasks.json"
LIFETIME_SECONDS: Final = 3600


def load_bundle(settings: Settings, directory: Path) -> TaskBundle:
    """The task with its base tree, its hidden cases well formed. Fetches pinned sources once. Raises InvalidTask."""
    bundle = load_task(directory, TaskSources(settings.sources_dir))
    count_cases(bundle)  # now, and not when a machine has been leased and an attempt paid for
    return bundle


def remember_tasks(round_dir: Path, directories: dict[str, Path]) -> None:
    """Where the frozen tasks lie on this machine (a sealed one: in which store); their digests are in the manifest."""
    text = json.dumps({name: str(path) for name, path in sorted(directories.items())}, indent=2)
    (round_dir / DIRECTORIES).write_text(text)


def task_directories(round_dir: Path) -> dict[str, Path]:
    """The directory of every public task of the round, and the store of every sealed one."""
    try:
        return {name: Path(path) for name, path in json.loads(read_named(round_dir / DIRECTORIES)).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise RoundNotFound(f"{round_dir / DIRECTORIES}: {error}") from error


def check_task(settings: Settings, directory: Path) -> Qualification:
    """Qualify one task in a leased verifier machine."""
    bundle = load_bundle(settings, directory)
    pool, spec = make_pool(settings), _verifier(settings, "check")
    try:
        return qualify(pool.lease(spec), bundle, GitPatches())
    finally:
        pool.destroy(spec.name, generation=spec.generation)


def verify_patch(settings: Settings, directory: Path, patch: Path) -> Verdict:
    """One verdict on a stranger's patch, in a fresh verifier machine. Raises InvalidInput when it does not apply."""
    bundle = load_bundle(settings, directory)
    patches = GitPatches()
    tree = dict(patches.apply_check(bundle.base, read_input(patch)))
    pool: Pool = make_pool(settings)
    spec = _verifier(settings, "verify")
    try:
        return verify(pool.lease(spec), bundle, HarvestedTree(tree=tree), patches)[0]
    finally:
        pool.destroy(spec.name, generation=spec.generation)


def _verifier(settings: Settings, purpose: str) -> SandboxSpec:
    digests = require_images(settings, {"vm-verifier"})
    return SandboxSpec(
        name=f"{purpose}-{SystemEntropy().token_bytes(6).hex()}",
        role=SandboxRole.VERIFIER,
        image_digest=digests["vm-verifier"],
        limits=SandboxLimits(),
        lifetime_seconds=LIFETIME_SECONDS,
        generation=1,
        owner="fairtrial",
        egress_socket=None,
    )
