"""What every pool promises. The same suite runs on the fake and, marked `vm`, on real machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from controller.domain.instant import InstantMs
from controller.errors import SandboxLost, StaleGeneration
from controller.ports.pool import Pool, Sandbox, SandboxSpec
from tests.world.clock import StepClock
from tests.world.harness_box import kill_container, podman_pool
from tests.world.machines import VERIFIER_LIMITS, Machines, qemu_machines
from tests.world.pool import FakePool


@dataclass
class World:
    """A pool under test, what it needs to lease, and a way to kill a machine behind its back."""

    pool: Pool
    spec: SandboxSpec
    kill: Callable[[str], None]

    def lease(self, **changes: object) -> Sandbox:
        """Lease with some fields of the usual request changed."""
        return self.pool.lease(SandboxSpec.model_validate({**dict(self.spec), **changes}))


def _fake() -> World:
    pool = FakePool(StepClock())

    def kill(name: str) -> None:
        pool.machines[name].alive = False

    return World(pool, Machines.spec("sha256:" + "0" * 64, limits=VERIFIER_LIMITS), kill)


@pytest.fixture(
    params=["fake", pytest.param("qemu", marks=pytest.mark.vm), pytest.param("podman", marks=pytest.mark.vm)]
)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if request.param == "fake":
        yield _fake()
        return
    if request.param == "podman":
        with podman_pool() as pool:
            spec = Machines.spec("sha256:" + "0" * 64, limits=VERIFIER_LIMITS)
            yield World(pool, spec, lambda name: kill_container(pool, name))
        return
    with qemu_machines(tmp_path_factory.mktemp("pool")) as machines:
        yield World(machines.pool, machines.spec(machines.verifier.digest, limits=VERIFIER_LIMITS), machines.kill)


def test_a_command_ends_with_its_own_exit_code_and_output(world: World) -> None:
    result = world.lease().exec(["sh", "-c", "cat; echo err >&2; exit 7"], stdin=b"in")
    assert (result.exit_code, result.stdout, result.stderr, result.truncated) == (7, b"in", b"err\n", False)


def test_output_is_cut_at_the_limit_and_says_so(world: World) -> None:
    result = world.lease().exec(["head", "-c", "5000", "/dev/zero"], output_bytes_max=1000)
    assert (len(result.stdout), result.truncated, result.exit_code) == (1000, True, 0)


def test_a_command_that_takes_too_long_loses_the_machine(world: World) -> None:
    with pytest.raises(SandboxLost):
        world.lease().exec(["sleep", "60"], timeout_seconds=0.5)


def test_a_file_comes_back_as_it_was_written(world: World) -> None:
    sandbox = world.lease()
    data = bytes(range(256)) * 400
    sandbox.write_file("/srv/new/deep/file", data)
    assert sandbox.read_file("/srv/new/deep/file", bytes_max=len(data)) == data
    for path, bytes_max in (("/srv/new/deep/file", len(data) - 1), ("/srv/absent", 10)):
        with pytest.raises(SandboxLost):
            sandbox.read_file(path, bytes_max=bytes_max)


def test_the_same_generation_adopts_and_a_newer_one_starts_afresh(world: World) -> None:
    first = world.lease()
    first.write_file("/srv/mark", b"first")
    assert world.lease().read_file("/srv/mark", bytes_max=10) == b"first"
    newer = world.lease(generation=2)
    assert newer.facts.generation == 2
    with pytest.raises(SandboxLost):
        newer.read_file("/srv/mark", bytes_max=10)
    with pytest.raises(SandboxLost):
        first.exec(["true"])


def test_a_stale_holder_can_neither_lease_nor_destroy(world: World) -> None:
    world.lease(generation=2)
    with pytest.raises(StaleGeneration):
        world.lease(generation=1)
    with pytest.raises(StaleGeneration):
        world.pool.destroy(world.spec.name, generation=1)
    assert world.pool.find(world.spec.name) is not None


def test_destroy_proves_the_machine_gone_and_may_be_repeated(world: World) -> None:
    sandbox = world.lease()
    assert [facts.name for facts in world.pool.inventory()] == [world.spec.name]
    receipt = world.pool.destroy(world.spec.name, generation=1)
    assert (receipt.existed, receipt.name, receipt.generation) == (True, world.spec.name, 1)
    assert receipt.proof
    assert world.pool.find(world.spec.name) is None
    assert world.pool.inventory() == ()
    assert world.pool.destroy(world.spec.name, generation=1).existed is False
    with pytest.raises(SandboxLost):
        sandbox.exec(["true"])


def test_the_reaper_takes_what_has_expired_and_nothing_else(world: World) -> None:
    facts = world.lease().facts
    assert world.pool.reap(at=InstantMs(facts.expires_at - 1)) == ()
    assert [receipt.name for receipt in world.pool.reap(at=facts.expires_at)] == [world.spec.name]
    assert world.pool.inventory() == ()


def test_a_dead_machine_is_listed_until_the_reaper_clears_it(world: World) -> None:
    sandbox = world.lease()
    world.kill(world.spec.name)
    assert world.pool.find(world.spec.name) is None
    assert [facts.alive for facts in world.pool.inventory()] == [False]
    with pytest.raises(SandboxLost):
        sandbox.exec(["true"])
    assert [receipt.existed for receipt in world.pool.reap(at=InstantMs(0))] == [True]
    assert world.pool.inventory() == ()
