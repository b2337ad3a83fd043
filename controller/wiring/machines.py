"""Images and the pool of machines that run them, made from the settings."""

from __future__ import annotations

from collections.abc import Callable, Set

from controller.adapters.egress_envoy import egress_digest
from controller.adapters.image_store import ImageStore
from controller.adapters.pool_podman import PodmanPool
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.errors import MissingImage
from controller.ports.pool import Pool
from controller.settings import Settings


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
