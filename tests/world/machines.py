"""Real machines for the tests marked `vm`: the repository's own image store, a fresh pool, and its clean-up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from controller.adapters import image_store, qemu_process
from controller.adapters.image_store import ImageStore
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.instant import InstantMs
from controller.domain.limits import GIB, SandboxLimits
from controller.ports.pool import ImageRef, SandboxRole, SandboxSpec

IMAGES: Final = Path(__file__).parents[2] / ".state" / "images"
VERIFIER_LIMITS: Final = SandboxLimits(vm_cpus=2, vm_memory_bytes=2 * GIB)
LIFETIME_SECONDS: Final = 600


@dataclass
class Machines:
    """A QEMU pool of its own and the baked images."""

    pool: QemuPool
    state_dir: Path
    runner: ImageRef
    verifier: ImageRef

    @staticmethod
    def spec(
        digest: str,
        *,
        name: str = "machine-1",
        role: SandboxRole = SandboxRole.VERIFIER,
        limits: SandboxLimits | None = None,
        lifetime_seconds: int = LIFETIME_SECONDS,
        egress_socket: str | None = None,
    ) -> SandboxSpec:
        """A request for the first generation of a machine."""
        return SandboxSpec(
            name=name,
            role=role,
            image_digest=digest,
            limits=limits or SandboxLimits(),
            lifetime_seconds=lifetime_seconds,
            generation=1,
            owner="tests",
            egress_socket=egress_socket,
        )

    def directory(self, name: str) -> Path:
        """Where the pool keeps that machine."""
        return self.state_dir / "machines" / name

    def kill(self, name: str) -> None:
        """Kill the machine's processes and leave everything else, as a crash of QEMU would."""
        assert qemu_process.kill(self.directory(name), SystemClock())


@contextmanager
def qemu_machines(state_dir: Path) -> Iterator[Machines]:
    """A pool on the repository's images; skips the test when none are baked, and leaves no machine behind."""
    store = ImageStore(IMAGES)
    runner, verifier = store.find(image_store.RUNNER), store.find(image_store.VERIFIER)
    if runner is None or verifier is None:
        pytest.skip("no images: run `fairtrial images build`")
    pool = QemuPool(store, state_dir, SystemClock(), SystemEntropy())
    try:
        yield Machines(pool, state_dir, runner, verifier)
    finally:
        pool.reap(at=InstantMs(2**62))
    assert pool.inventory() == ()
