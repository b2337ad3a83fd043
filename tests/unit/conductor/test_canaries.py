"""Every attempt has a canary of its own, which the publisher can derive again and nobody else."""

from __future__ import annotations

from pathlib import Path

from controller.conductor.attempt import intend, load
from controller.conductor.opening import launch_order
from controller.conductor.world import derived_token
from controller.domain.ids import AttemptId
from controller.run.rules import order_json
from tests.world.simulation import Simulation


def test_each_attempt_and_generation_has_its_own_canary_in_environment_and_home(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    world, run = simulation.world(), simulation.frozen.manifest.schedule[0]
    seen = set()
    for name, generation in (("att-a-1", 1), ("att-a-1", 2), ("att-b-1", 1)):
        attempt = AttemptId(name)
        intend(world, run, attempt, 1, generation=generation)
        assert load(world, attempt).generation == generation
        order = launch_order(world, run, attempt, generation)
        contract = order_json(order)["contract"]
        assert contract["env"]["FAIRTRIAL_CANARY"] == order.canary
        assert order.canary in contract["files"][".fairtrial-canary"]
        assert order.canary == derived_token(b"s" * 32, simulation.frozen.digest, "canary", attempt, generation)
        assert order.canary not in (order.upload_token, world.token("rt", attempt, generation))
        seen.add(order.canary)
    assert len(seen) == 3
