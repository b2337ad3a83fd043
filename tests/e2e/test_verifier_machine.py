"""The verifier machine itself: gold passes there, attacks do not, and it has no network. One fresh machine a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller import verify
from controller.adapters.git_patch import GitPatches
from controller.domain.tree_stream import HarvestedTree
from controller.ports.pool import Sandbox
from tests.world.attacks import node_attacks, python_attacks
from tests.world.machines import VERIFIER_LIMITS, Machines, qemu_machines
from tests.world.tasks import Language, file, sample_bundle

pytestmark = pytest.mark.vm

PATCHES = GitPatches()
ATTACKS: dict[Language, tuple[str, ...]] = {
    "python": (
        "reads-case-file",
        "reads-judge-memory",
        "daemon-forges-later",
        "overwrites-the-verifier",
        "raises-privileges",
    ),
    "node": ("reads-case-file", "forged-at-exit", "detached-daemon"),
}
EATS_MEMORY = """
import os
for _ in range(8):
    if os.fork() == 0:
        break
hoard = []
while True:
    hoard.append(bytearray(os.urandom(1 << 20)) * 16)
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with qemu_machines(tmp_path_factory.mktemp("pool")) as pool:
        yield pool


@pytest.fixture
def machine(machines: Machines) -> Iterator[Sandbox]:
    """A fresh one for every test, as for every patch."""
    spec = Machines.spec(machines.verifier.digest, limits=VERIFIER_LIMITS, lifetime_seconds=1800)
    yield machines.pool.lease(spec)
    machines.pool.destroy(spec.name, generation=spec.generation)


def test_the_machine_has_no_network_device(machine: Sandbox) -> None:
    assert machine.exec(["ls", "/sys/class/net"], timeout_seconds=120).stdout.split() == [b"lo"]


@pytest.mark.parametrize("language", ["python", "node"])
def test_the_gold_patch_passes_and_the_bare_base_fails(language: Language, machine: Sandbox) -> None:
    found = verify.qualify(machine, sample_bundle(language, verify_seconds=240), PATCHES)
    assert (found.gold_passed, found.empty_failed, found.faults) == (3, 3, ())


@pytest.mark.parametrize(
    ("language", "name"), [(language, name) for language, names in ATTACKS.items() for name in names]
)
def test_no_attack_passes(language: Language, name: str, machine: Sandbox) -> None:
    attacks = {"python": python_attacks, "node": node_attacks}[language]()
    bundle = sample_bundle(language, verify_seconds=240)
    tree = {**bundle.base, **{path: file(text) for path, text in attacks[name].items()}}
    verdict, _ = verify.verify(machine, bundle, HarvestedTree(tree=tree), PATCHES)
    assert [gate.name for gate in verdict.gates if not gate.passed] == ["hidden-verifier"]
    left = machine.exec(["find", "/proc", "-maxdepth", "1", "-uid", "64100"], timeout_seconds=120)
    assert left.stdout == b""  # the subject's user owns no process any more


def test_a_subject_that_eats_all_memory_does_not_take_the_machine_with_it(machine: Sandbox) -> None:
    bundle = sample_bundle("python", verify_seconds=240)
    tree = {**bundle.base, "ordinals.py": file(EATS_MEMORY)}
    verdict, _ = verify.verify(machine, bundle, HarvestedTree(tree=tree), PATCHES)
    assert verdict.gates[-1].detail.endswith("it ended with code -9 after 0 of 6 answers")
