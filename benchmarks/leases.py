"""A warm lease against a cold boot."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks.timing import seconds
from controller.adapters.image_store import ImageStore
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.limits import SandboxLimits
from controller.ports.pool import SandboxRole, SandboxSpec
from controller.settings import Settings

LEASES = 5


def leases() -> dict[str, object]:
    """A lease from the warm state to the first answered command, against the cold boot that made the state."""
    store = ImageStore(Settings().images_dir)
    image = store.find("vm-verifier")
    if image is None:
        return {"skipped": "no images; run `fairtrial images build`"}
    with tempfile.TemporaryDirectory() as directory:
        pool = QemuPool(store, Path(directory), SystemClock(), SystemEntropy())
        state = pool.warm(image, SandboxRole.VERIFIER, SandboxLimits(), network=False)
        cold = state.facts().boot_milliseconds / 1000
        times = []
        for number in range(LEASES):
            spec = SandboxSpec(
                name=f"bench-{number}",
                role=SandboxRole.VERIFIER,
                image_digest=image.digest,
                limits=SandboxLimits(),
                lifetime_seconds=300,
                generation=1,
                owner="bench",
            )
            times.append(seconds(lambda spec=spec: pool.lease(spec).exec(["true"])))  # type: ignore[misc]
            pool.destroy(spec.name, generation=1)
    warm = statistics.median(times)
    return {"cold_boot_s": cold, "warm_lease_s": round(warm, 2), "ratio": round(cold / warm, 1), "goal": ">= 5"}
