"""`make bench`: the project's figures on this machine, as ratios where a ratio can be made in one run."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from controller.adapters.image_store import ImageStore
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.analyse import analyse_bytes
from controller.domain.limits import SandboxLimits
from controller.ports.pool import SandboxRole, SandboxSpec
from controller.settings import Settings
from tests.world.rounds import jsonl, realistic

LEASES = 5


def seconds(act: Callable[[], object]) -> float:
    """Wall time of one call."""
    before = time.perf_counter()
    act()
    return time.perf_counter() - before


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


def analysis() -> dict[str, object]:
    """The whole analysis of 12 arms, 100 tasks, 3 repeats and 10,000 resamples."""
    data = jsonl(realistic([f"task-{i:03}" for i in range(100)], [f"arm-{i:02}" for i in range(12)]))
    times = [seconds(lambda: analyse_bytes(data)) for _ in range(3)]
    return {"median_s": round(statistics.median(times), 2), "statistics": 330}


def main() -> int:
    """Run every benchmark, or those named; one JSON object."""
    known: dict[str, Callable[[], dict[str, object]]] = {"leases": leases, "analysis": analysis}
    names = sys.argv[1:] or list(known)
    sys.stdout.write(json.dumps({name: known[name]() for name in names}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
