"""The `qemu` pool: one QEMU process per machine, restored from a warm state, described by files and /proc alone.

A machine's directory is `<state>/machines/<name>/`; `facts.json` is written before the process starts, so that whatever
happens next the machine can be found and destroyed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.adapters import image_bake, qemu_process
from controller.adapters.image_store import RUNNER, VERIFIER, ImageStore, Progress
from controller.adapters.qemu_accelerator import AcceleratorProbe, accelerator
from controller.adapters.qemu_process import Qmp, Shape
from controller.adapters.qemu_sandbox import FACTS, MachineFacts, QemuSandbox, read_facts
from controller.adapters.qemu_ssh import Channel, Credentials
from controller.adapters.qemu_warm import WarmState, ensure_warm
from controller.domain.instant import InstantMs
from controller.domain.limits import GIB, SandboxLimits
from controller.errors import ControllerFault, MissingImage, SandboxLost, StaleGeneration
from controller.ports.clock import Clock
from controller.ports.entropy import Entropy
from controller.ports.pool import (
    DestroyReceipt,
    ImageRef,
    Isolation,
    Sandbox,
    SandboxFacts,
    SandboxRole,
    SandboxSpec,
)

NAME_PATTERN: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"  # a DNS label, as the attempt ids are
STRIPES: Final = 256
VERIFIER_CPUS_MAX: Final = 2  # a verdict is one program's, not a contest of speed
VERIFIER_MEMORY_MAX: Final = 2 * GIB


class QemuPool:
    """Leases, finds and destroys machines. Safe to use from several threads and processes on one state directory."""

    def __init__(self, store: ImageStore, state_dir: Path, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._machines = state_dir.absolute() / "machines"
        self._locks = state_dir.absolute() / "locks"
        self._cache = state_dir.absolute() / "accelerator.json"
        self._clock = clock
        self._entropy = entropy
        self._channels: dict[tuple[str, InstantMs], Channel] = {}
        self._channels_lock = threading.Lock()

    @property
    def name(self) -> str:
        """`qemu`."""
        return "qemu"

    @property
    def isolation(self) -> Isolation:
        """A virtual machine."""
        return Isolation.VM

    def probe(self, image: ImageRef) -> AcceleratorProbe:
        """KVM or emulation, and why; found by booting the image's kernel once per boot of this host."""
        return accelerator(image.path / image_bake.KERNEL, self._cache)

    def warm(self, image: ImageRef, role: SandboxRole, limits: SandboxLimits, *, network: bool) -> WarmState:
        """The warm state that a lease of this kind restores, made now if need be. Raises SandboxLost."""
        return ensure_warm(
            image,
            machine_shape(role, limits, network=network),
            self.probe(image).accelerator,
            clock=self._clock,
            entropy=self._entropy,
            credentials=_credentials(image.path),
        )

    def prepare(self, progress: Progress = lambda step, done, total: None) -> None:
        """Make the warm states of the newest images at the default limits, so that no attempt waits for one.

        Raises MissingImage before the images are baked, SandboxLost when a machine does not boot.
        """
        for done, (name, role) in enumerate(((RUNNER, SandboxRole.RUNNER), (VERIFIER, SandboxRole.VERIFIER))):
            progress(f"warm state of {name}", done, 2)
            image = self._store.find(name)
            if image is None:
                raise MissingImage(f"not baked yet: {name}")
            self.warm(image, role, SandboxLimits(), network=role is SandboxRole.RUNNER)
        progress("warm states", 2, 2)

    def lease(self, spec: SandboxSpec) -> Sandbox:
        """A machine that answers; see the port. The first lease of a kind of hardware also makes its warm state."""
        image = self._store.by_digest(spec.image_digest)
        if spec.role is SandboxRole.VERIFIER and spec.egress_socket is not None:
            raise ControllerFault(f"{spec.name}: a verifier never has a network")
        warm = self.warm(image, spec.role, spec.limits, network=spec.egress_socket is not None)
        with self._locked(spec.name):
            directory = self._directory(spec.name)
            known = read_facts(directory)
            if known is not None and known.generation > spec.generation:
                raise StaleGeneration(
                    f"{spec.name}: generation {known.generation} holds the lease, not {spec.generation}"
                )
            if known is not None and known.generation == spec.generation and qemu_process.processes(directory):
                return self._sandbox(known)
            self._remove(directory)
            facts = self._write_facts(spec, image)
            try:
                self._start(directory, spec, warm)
                sandbox = self._sandbox(facts)
                sandbox.connect()
                self._apply_limits(sandbox, spec)
            except BaseException:
                self._forget(facts)
                self._remove(directory)
                raise
            return sandbox

    def find(self, name: str) -> Sandbox | None:
        """The live machine of that name, or None."""
        directory = self._directory(name)
        facts = read_facts(directory)
        return None if facts is None or not qemu_process.processes(directory) else self._sandbox(facts)

    def destroy(self, name: str, *, generation: int) -> DestroyReceipt:
        """Destroy the machine and prove it gone; see the port."""
        with self._locked(name):
            return self._destroy(name, generation)

    def inventory(self) -> tuple[SandboxFacts, ...]:
        """Every machine with a directory, dead remains included, by name."""
        found = []
        for directory in self._directories():
            if (facts := read_facts(directory)) is not None:
                found.append(facts.public(directory))
        return tuple(found)

    def reap(self, *, at: InstantMs) -> tuple[DestroyReceipt, ...]:
        """Destroy whatever has expired or is dead but not cleaned up, whoever owns it."""
        receipts = []
        for directory in self._directories():
            with self._locked(directory.name):
                facts = read_facts(directory)
                if facts is None or facts.expires_at <= at or not qemu_process.processes(directory):
                    receipts.append(self._destroy(directory.name, facts.generation if facts else 0))
        return tuple(receipts)

    def disconnect(self) -> None:
        """Close every channel of this process; the machines stay, for another process to adopt."""
        with self._channels_lock:
            channels = list(self._channels.values())
            self._channels.clear()
        for channel in channels:
            channel.close()

    def _destroy(self, name: str, generation: int) -> DestroyReceipt:
        directory = self._directory(name)
        facts = read_facts(directory)
        if facts is not None:
            if facts.generation > generation:
                raise StaleGeneration(f"{name}: generation {facts.generation} holds the lease, not {generation}")
            self._forget(facts)
        existed = directory.exists()
        pids = self._remove(directory)
        left = qemu_process.processes(directory)
        if left or directory.exists():
            raise SandboxLost(f"{name}: still there after the kill: processes {left}, directory {directory}")
        was = f"killed {', '.join(map(str, pids))}" if pids else "no process was alive"
        proof = f"{was}; no process in /proc names its pid file; overlays, sockets and directory unlinked"
        return DestroyReceipt(
            name=name,
            generation=facts.generation if facts else generation,
            existed=existed or bool(pids),
            destroyed_at=self._clock.now(),
            proof=proof,
        )

    def _start(self, directory: Path, spec: SandboxSpec, warm: WarmState) -> None:
        hardware = warm.hardware(directory, egress_socket=spec.egress_socket)
        command = qemu_process.command_line(spec.name, directory, hardware)
        qemu_process.start(command, directory, self._clock, lifetime_seconds=spec.lifetime_seconds)
        with Qmp(directory, self._clock) as qmp:
            qmp.restore_state(warm.device_state)

    def _apply_limits(self, sandbox: QemuSandbox, spec: SandboxSpec) -> None:
        """Set the second layer, around the whole engine, where the image's own values are not the ones asked for."""
        limits, default = spec.limits, SandboxLimits()
        same = (limits.cpus, limits.memory_bytes, limits.processes) == (
            default.cpus, default.memory_bytes, default.processes,
        )  # fmt: skip
        if spec.role is SandboxRole.VERIFIER or same:
            return
        properties = [
            f"CPUQuota={limits.cpus * 100}%",
            f"MemoryMax={limits.memory_bytes + 512 * 2**20}",
            f"TasksMax={limits.processes + 128}",
        ]
        if sandbox.exec(["systemctl", "set-property", "--runtime", "user-1000.slice", *properties]).exit_code != 0:
            raise SandboxLost(f"{spec.name}: the engine's slice does not take its limits")

    def _write_facts(self, spec: SandboxSpec, image: ImageRef) -> MachineFacts:
        now = self._clock.now()
        facts = MachineFacts(
            name=spec.name,
            role=spec.role,
            generation=spec.generation,
            owner=spec.owner,
            created_at=now,
            expires_at=InstantMs(now + spec.lifetime_seconds * 1000),
            image=str(image.path),
        )
        temporary = self._machines / f".{spec.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True, mode=0o700)
        with (temporary / FACTS).open("w", encoding="utf-8") as file:
            file.write(facts.model_dump_json(indent=2))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._directory(spec.name))
        _fsync_directory(self._machines)
        return facts

    def _remove(self, directory: Path) -> tuple[int, ...]:
        pids = qemu_process.kill(directory, self._clock)
        shutil.rmtree(directory, ignore_errors=True)
        return pids

    def _sandbox(self, facts: MachineFacts) -> QemuSandbox:
        directory = self._directory(facts.name)
        with self._channels_lock:
            key = (facts.name, facts.created_at)
            if key not in self._channels:
                credentials = _credentials(Path(facts.image))
                self._channels[key] = Channel(
                    directory, credentials, self._clock, self._entropy, lambda: read_facts(directory) == facts
                )
            return QemuSandbox(facts, directory, self._channels[key])

    def _forget(self, facts: MachineFacts) -> None:
        with self._channels_lock:
            channel = self._channels.pop((facts.name, facts.created_at), None)
        if channel is not None:
            channel.close()

    def _directory(self, name: str) -> Path:
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise ControllerFault(f"{name!r} is not the name of a machine")
        return self._machines / name

    def _directories(self) -> tuple[Path, ...]:
        if not self._machines.is_dir():
            return ()
        return tuple(sorted(path for path in self._machines.iterdir() if re.fullmatch(NAME_PATTERN, path.name)))

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        # A fixed number of lock files, because one per name would stay for ever.
        self._locks.mkdir(parents=True, exist_ok=True)
        with (self._locks / f"{zlib.crc32(name.encode()) % STRIPES:03d}").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def machine_shape(role: SandboxRole, limits: SandboxLimits, *, network: bool) -> Shape:
    """The virtual hardware for a role: all that was asked for a runner, little for a verifier."""
    runner = role is SandboxRole.RUNNER
    cpus, memory = limits.vm_cpus, limits.vm_memory_bytes
    if not runner:
        cpus, memory = min(cpus, VERIFIER_CPUS_MAX), min(memory, VERIFIER_MEMORY_MAX)
    return Shape(
        cpus=cpus,
        memory_bytes=memory // 2**20 * 2**20,
        scratch_bytes=limits.disk_bytes if runner else None,
        harnesses=runner,
        network=network,
    )


def _credentials(image: Path) -> Credentials:
    return Credentials(image / image_bake.CA_KEY, image / image_bake.HOST_KEY)


def _fsync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
