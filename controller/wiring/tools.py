"""Single adapters, made from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from pathlib import Path

from pydantic import ValidationError

from controller.adapters.egress_envoy import egress_digest
from controller.adapters.files_durable import LocalFiles
from controller.adapters.image_store import ImageStore
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.pool_podman import PodmanPool
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.signer_file import FileSigner
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.authorize import authorize
from controller.domain.authorization import Authorization, Caps
from controller.domain.bodies import RoundAuthorized
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput, MissingImage, RoundNotFound
from controller.evidence.canonical import canonical
from controller.freeze import load_frozen
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.pool import Pool
from controller.settings import Settings


def system_clock() -> Clock:
    """The clock of this machine."""
    return SystemClock()


def local_files() -> DurableFiles:
    """Durable files on a local disk."""
    return LocalFiles()


def image_store(settings: Settings) -> ImageStore:
    """The baked images."""
    return ImageStore(settings.images_dir)


def build_images(settings: Settings, progress: Callable[[str, int, int], None]) -> None:
    """Bake what changed, and bring one machine of each role to rest, so that a lease takes seconds."""
    image_store(settings).build(progress)
    pool = make_pool(settings)
    if isinstance(pool, QemuPool):
        pool.prepare(progress)


def image_digests(settings: Settings) -> dict[str, str]:
    """Every baked image by name, and the egress proxy's program. What a manifest names."""
    return {**image_store(settings).digests(), "egress-proxy": egress_digest()}


def require_images(settings: Settings, names: Set[str]) -> dict[str, str]:
    """The digests of all baked images. Raises MissingImage naming those that are wanted and absent."""
    digests = image_digests(settings)
    missing = sorted(names - digests.keys())
    if missing:
        raise MissingImage(f"not baked yet: {', '.join(missing)} (looked in {settings.images_dir})")
    return digests


def make_pool(settings: Settings) -> Pool:
    """The pool the settings choose."""
    clock, entropy = SystemClock(), SystemEntropy()
    if settings.pool == "podman":
        return PodmanPool(image_store(settings), settings.pool_dir / "podman", clock)
    return QemuPool(image_store(settings), settings.pool_dir / "qemu", clock, entropy)


def publisher(settings: Settings) -> FileSigner:
    """The key that signs manifests, grants and bundles; made at first use."""
    return FileSigner.open(settings.keys_dir / "publisher.pem")


def grant(settings: Settings, round_dir: Path, caps: Mapping[str, object] | None, *, valid_hours: int) -> Authorization:
    """Sign an authorization. Without caps: every attempt the protocol allows, each with its ceilings.

    Raises InvalidInput naming the cap that is not a sensible number.
    """
    try:
        wanted = Caps.model_validate(caps) if caps else full_caps(round_dir)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"cap {first['loc'][0]}: {first['msg']}") from error
    clock = SystemClock()
    frozen = load_frozen(round_dir)
    if not (round_dir / "journal.sqlite").is_file():  # a grant must not begin a new log in place of a lost one
        raise RoundNotFound(f"{round_dir / 'journal.sqlite'}: the round's log is missing", remedy="Restore it.")
    granted = authorize(
        round_dir,
        frozen.digest,
        wanted,
        publisher(settings),
        clock,
        files=LocalFiles(),
        round_id=frozen.manifest.round_id,
        expires_at=InstantMs(clock.now() + valid_hours * 3_600_000),
    )
    digest = sha256_digest(canonical(granted))
    body = RoundAuthorized(manifest_digest=frozen.digest, authorization_digest=digest)
    journal = SqlJournal.in_directory(round_dir)
    key = f"{StatementKind.ROUND_AUTHORIZED}:{digest}"
    journal.append(StatementKind.ROUND_AUTHORIZED, frozen.manifest.round_id, body, at=clock.now(), key=key)
    journal.close()
    return granted


def full_caps(round_dir: Path) -> Caps:
    """What the round uses at the very most."""
    manifest = load_frozen(round_dir).manifest
    runs = len(manifest.schedule)
    attempts = runs * ATTEMPTS_PER_LOGICAL_RUN_MAX
    return Caps(
        logical_runs=runs,
        attempts=attempts,
        requests=attempts * manifest.spend_limits.requests_per_attempt,
        usd=usd_to_text(attempts * usd_from_text(manifest.spend_limits.usd_per_attempt)),
        timeout_minutes=max(1, -(-attempts * manifest.sandbox_limits.agent_seconds // 60)),
    )
