"""What the qemu pool decides before it starts a machine, and what it reads from its directory alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters import qemu_warm
from controller.adapters.image_store import ImageStore
from controller.adapters.pool_qemu import VERIFIER_CPUS_MAX, VERIFIER_MEMORY_MAX, QemuPool, machine_shape
from controller.adapters.qemu_process import Accelerator
from controller.adapters.qemu_sandbox import FACTS, MachineFacts
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.instant import InstantMs
from controller.domain.limits import SandboxLimits
from controller.errors import ControllerFault, MissingImage, StaleGeneration
from controller.ports.pool import SandboxRole
from tests.unit.adapters.test_image_store import write_image
from tests.world.machines import Machines


@pytest.fixture
def pool(tmp_path: Path) -> QemuPool:
    return QemuPool(ImageStore(tmp_path / "images"), tmp_path / "pool", SystemClock(), SystemEntropy())


def leave_remains(tmp_path: Path, name: str, generation: int) -> Path:
    """A machine whose process died, as a crashed controller would find it."""
    directory = tmp_path / "pool" / "machines" / name
    directory.mkdir(parents=True)
    facts = MachineFacts(
        name=name,
        role=SandboxRole.RUNNER,
        generation=generation,
        owner="tests",
        created_at=InstantMs(1_000),
        expires_at=InstantMs(2_000),
        image="/images/vm-runner",
    )
    (directory / FACTS).write_text(facts.model_dump_json())
    return directory


def test_a_verifier_is_small_and_a_runner_has_what_was_asked() -> None:
    verifier = machine_shape(SandboxRole.VERIFIER, SandboxLimits(), network=False)
    assert (verifier.cpus, verifier.memory_bytes) == (VERIFIER_CPUS_MAX, VERIFIER_MEMORY_MAX)
    assert (verifier.scratch_bytes, verifier.harnesses) == (None, False)
    limits = SandboxLimits()
    runner = machine_shape(SandboxRole.RUNNER, limits, network=True)
    assert (runner.cpus, runner.memory_bytes, runner.scratch_bytes) == (4, limits.vm_memory_bytes, limits.disk_bytes)


def test_a_warm_state_is_tied_to_qemu_accelerator_and_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = machine_shape(SandboxRole.RUNNER, SandboxLimits(), network=True)
    monkeypatch.setattr(qemu_warm, "qemu_version", lambda: "QEMU 7.2")
    keys = {
        qemu_warm.warm_key(shape, Accelerator.TCG),
        qemu_warm.warm_key(shape, Accelerator.KVM),
        qemu_warm.warm_key(shape.model_copy(update={"network": False}), Accelerator.TCG),
        qemu_warm.warm_key(shape.model_copy(update={"cpus": 2}), Accelerator.TCG),
    }
    monkeypatch.setattr(qemu_warm, "qemu_version", lambda: "QEMU 8.0")
    keys.add(qemu_warm.warm_key(shape, Accelerator.TCG))
    assert len(keys) == 5


def test_nothing_starts_without_an_image_or_with_a_verifier_on_a_network(pool: QemuPool, tmp_path: Path) -> None:
    with pytest.raises(MissingImage):
        pool.lease(Machines.spec("sha256:" + "4" * 64))
    with pytest.raises(MissingImage, match="vm-runner"):
        pool.prepare()
    digest = write_image(tmp_path / "images", "vm-verifier", "aa", "2").digest()
    with pytest.raises(ControllerFault, match="never has a network"):
        pool.lease(Machines.spec(digest, egress_socket="/s"))
    assert pool.inventory() == ()


@pytest.mark.parametrize("name", ["../etc", "", "UPPER", "a/b", ".tmp", "x" * 64])
def test_a_name_can_not_leave_the_state_directory(pool: QemuPool, name: str) -> None:
    with pytest.raises(ControllerFault):
        pool.find(name)


def test_remains_are_listed_fenced_and_cleared(pool: QemuPool, tmp_path: Path) -> None:
    directory = leave_remains(tmp_path, "att-1", generation=3)
    assert [(facts.name, facts.generation, facts.alive) for facts in pool.inventory()] == [("att-1", 3, False)]
    assert pool.find("att-1") is None
    with pytest.raises(StaleGeneration):
        pool.destroy("att-1", generation=2)
    receipt = pool.destroy("att-1", generation=3)
    assert (receipt.existed, directory.exists()) == (True, False)
    assert "no process was alive" in receipt.proof


def test_the_reaper_clears_a_directory_without_readable_facts(pool: QemuPool, tmp_path: Path) -> None:
    directory = leave_remains(tmp_path, "att-2", generation=1)
    (directory / FACTS).write_text("{")
    assert [receipt.name for receipt in pool.reap(at=InstantMs(0))] == ["att-2"]
    assert not directory.exists()
