"""Everything that conducting a round needs, made in order and ended with it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters.artifacts_fs import FsArtifacts
from controller.adapters.doctor import disk
from controller.adapters.files_durable import sync_directory
from controller.adapters.flows import load_flows
from controller.adapters.git_patch import GitPatches
from controller.adapters.registries import registry_hosts
from controller.adapters.round_lock import round_lock
from controller.adapters.software import software_digest
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.conductor.world import World
from controller.domain.keys import KeyRing
from controller.domain.plan import RoundManifest
from controller.domain.statement import StatementKind
from controller.errors import DiskFull, InvalidInput, MissingImage
from controller.harnesses import HARNESSES
from controller.settings import Settings
from controller.wiring.ledgers import ledger_of
from controller.wiring.machines import image_digests, make_pool
from controller.wiring.round_tasks import RoundTasks
from controller.wiring.rounds import SECRET_FILE, OpenRound, checkpoints_of, read_round
from controller.wiring.services import RoundServices
from controller.wiring.tasks import task_directories
from controller.wiring.tools import local_files, publisher

SECRET_BYTES: Final = 32


@contextmanager
def conducting(settings: Settings, round_dir: Path) -> Iterator[World]:
    """Everything a round needs to run: its lock held, its services up, its tasks and images as frozen.

    Nothing is leased or spent before all of it is in order. Raises PortOccupied, MissingImage, InvalidTask, DiskFull,
    SealedKeyMissing.
    """
    found = read_round(round_dir)
    room = disk(settings.state_dir, settings.free_disk_bytes_min)
    if not room.ok:
        raise DiskFull(f"too little room to start: {room.detail}")
    _check_images(settings, found.manifest)
    check_programs(settings, found.manifest)
    tasks = RoundTasks(settings, found.manifest, task_directories(found.directory))
    with round_lock(found.directory):
        place = ledger_of(settings, found.directory, found.digest)
        services = RoundServices(settings, found.directory, found.manifest, tasks.scripts(), place)
        clock = SystemClock()
        with services.running():
            ledger = place.open(clock)
            artifacts = FsArtifacts(services.artifacts_dir, services.grants_file, clock)
            try:
                yield World(
                    round_dir=found.directory,
                    manifest=found.manifest,
                    manifest_digest=found.digest,
                    tasks=tasks,
                    harnesses=HARNESSES,
                    journal=found.journal,
                    checkpoints=checkpoints_of(settings, found),
                    pool=make_pool(settings),
                    ledger=ledger,
                    artifacts=artifacts,
                    patches=GitPatches(),
                    files=local_files(),
                    clock=clock,
                    keys=KeyRing(keys=(publisher(settings).key,)),
                    secret=_secret(found.directory),
                    egress_socket=str(services.egress_socket),
                    owner=f"{found.manifest.round_id}@{os.uname().nodename}",
                    epoch=_next_epoch(found),
                    rate_card_in_use=services.rate_card_in_use,
                    probe_names=registry_hosts(),
                )
            finally:
                ledger.close()
                artifacts.close()
                found.journal.close()


def _next_epoch(found: OpenRound) -> int:
    return 1 + sum(1 for s in found.journal.statements() if s.kind is StatementKind.ROUND_STARTED)


def _check_images(settings: Settings, manifest: RoundManifest) -> None:
    """The images on this machine must be the ones that were frozen."""
    present = image_digests(settings)
    wrong = sorted(name for name, digest in manifest.images.items() if present.get(name) != digest)
    if wrong:
        raise MissingImage(
            f"round {manifest.round_id} was frozen with other images than this machine has: {', '.join(wrong)}",
            remedy="Run `fairtrial images build` at the version that froze the round, or freeze a new round.",
        )


def check_programs(settings: Settings, manifest: RoundManifest) -> None:
    """Our own programs and the network policy must be the ones that were frozen. Raises InvalidInput."""
    now = {
        "fairtrial itself": (software_digest(), manifest.software_digest),
        "the network policy": (load_flows(settings.flows_file).digest, manifest.network_policy_digest),
    }
    wrong = [name for name, (present, frozen) in now.items() if present != frozen]
    if wrong:
        raise InvalidInput(
            f"round {manifest.round_id} was frozen with another version of: {', '.join(wrong)}",
            remedy="Run it with the version that froze it, or freeze a new round.",
        )


def _secret(round_dir: Path) -> bytes:
    """The round's token secret, made at first use, whole or not at all, readable by its owner only."""
    path = round_dir / SECRET_FILE
    if not path.exists():
        descriptor, name = tempfile.mkstemp(dir=round_dir, prefix=".secret-")  # mode 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(SystemEntropy().token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
        sync_directory(round_dir)
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise InvalidInput(f"{path}: {len(secret)} bytes, expected {SECRET_BYTES}", remedy="Restore the file.")
    return secret
