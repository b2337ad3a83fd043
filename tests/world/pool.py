"""The Pool port in memory. Its machines are scratch directories of the host and offer no isolation at all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from controller.domain.instant import InstantMs
from controller.errors import SandboxLost, StaleGeneration
from controller.ports.clock import Clock
from controller.ports.containers import Containers
from controller.ports.pool import DestroyReceipt, ExecResult, Isolation, SandboxFacts, SandboxSpec
from tests.world.local_sandbox import LocalSandbox


@dataclass
class FakeSandbox:
    """A machine that runs commands on the host and keeps its files in memory."""

    pool: FakePool
    spec: SandboxSpec
    created_at: InstantMs
    files: dict[str, bytes] = field(default_factory=dict)
    alive: bool = True

    @property
    def facts(self) -> SandboxFacts:
        return SandboxFacts(
            name=self.spec.name,
            role=self.spec.role,
            generation=self.spec.generation,
            owner=self.spec.owner,
            created_at=self.created_at,
            expires_at=InstantMs(self.created_at + self.spec.lifetime_seconds * 1000),
            alive=self.alive,
        )

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        self._check()
        return LocalSandbox().exec(
            argv, stdin=stdin, timeout_seconds=timeout_seconds, output_bytes_max=output_bytes_max
        )

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self._check()
        self.files[path] = data

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        self._check()
        if path not in self.files or len(self.files[path]) > bytes_max:
            raise SandboxLost(f"{self.spec.name}: {path} is absent or larger than {bytes_max} bytes")
        return self.files[path]

    def containers(self) -> AbstractContextManager[Containers]:
        raise SandboxLost(f"{self.spec.name}: this machine has no container engine")

    def console(self) -> str:
        return ""

    def _check(self) -> None:
        if not self.alive or self.pool.machines.get(self.spec.name) is not self:
            raise SandboxLost(f"{self.spec.name}: the machine is gone")


class FakePool:
    """Machines by name. A test kills one by setting `alive` to False."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.machines: dict[str, FakeSandbox] = {}
        self.leases = 0

    @property
    def name(self) -> str:
        return "fake"

    @property
    def isolation(self) -> Isolation:
        return Isolation.VM

    def lease(self, spec: SandboxSpec) -> FakeSandbox:
        known = self.machines.get(spec.name)
        if known is not None and known.spec.generation > spec.generation:
            raise StaleGeneration(f"{spec.name}: generation {known.spec.generation} exists")
        if known is not None and known.alive and known.spec.generation == spec.generation:
            return known
        self.leases += 1
        self.machines[spec.name] = FakeSandbox(self, spec, self._clock.now())
        return self.machines[spec.name]

    def find(self, name: str) -> FakeSandbox | None:
        known = self.machines.get(name)
        return known if known is not None and known.alive else None

    def destroy(self, name: str, *, generation: int) -> DestroyReceipt:
        known = self.machines.get(name)
        if known is not None and known.spec.generation > generation:
            raise StaleGeneration(f"{name}: generation {known.spec.generation} exists")
        existed = self.machines.pop(name, None) is not None
        return DestroyReceipt(
            name=name,
            generation=generation,
            existed=existed,
            destroyed_at=self._clock.now(),
            proof="forgotten" if existed else "there was none",
        )

    def inventory(self) -> tuple[SandboxFacts, ...]:
        return tuple(machine.facts for machine in self.machines.values())

    def reap(self, *, at: InstantMs) -> tuple[DestroyReceipt, ...]:
        over = [m.facts for m in self.machines.values() if not m.alive or m.facts.expires_at <= at]
        return tuple(self.destroy(facts.name, generation=facts.generation) for facts in over)
