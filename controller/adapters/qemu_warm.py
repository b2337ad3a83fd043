"""Warm states: a machine booted once per image and kind of hardware, saved, and restored for every lease.

The guest's memory is a file. While the state is made it is shared with QEMU; a lease maps it privately, so a restore
reads only what the guest touches and machines share the pages they do not write.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters import image_bake, qemu_process
from controller.adapters.containers_docker import DockerContainers
from controller.adapters.qemu_accelerator import qemu_version
from controller.adapters.qemu_process import MACHINE, Accelerator, Hardware, Qmp, Shape
from controller.adapters.qemu_ssh import Channel, Credentials, engine_stream
from controller.domain.limits import SandboxLimits
from controller.domain.record import Record
from controller.errors import DiskFull, SandboxLost
from controller.ports.clock import Clock
from controller.ports.containers import ContainerSpec
from controller.ports.entropy import Entropy
from controller.ports.pool import ImageRef

FORMAT: Final = 1  # raise when the command line changes the guest's hardware
BOOT_SECONDS: Final = 180.0  # a cold boot under emulation takes 15 s alone and a minute on a busy machine
MAKE_SECONDS: Final = 420
SETTLE_SECONDS: Final = 1.0
SCRATCH_RESERVED_PERCENT: Final = 1  # the engine's own records must fit beside a harness that fills the disk
ROOT, SCRATCH, MEMORY, STATE, FACTS = "root.qcow2", "scratch.qcow2", "memory", "devices", "warm.json"
TRIAL_SECONDS: Final = 240.0
SHIM_IMPORTS: Final = "import binascii, ctypes, hashlib, json, selectors, socket, struct, unicodedata, zipimport"
PROBE_RUNS: Final = 2  # the first container fills caches, the second shows that they are full


class WarmFacts(Record):
    """What a warm state is tied to, and what it cost."""

    qemu: str
    accelerator: Accelerator
    cpu_model: str
    machine: str
    shape: Shape
    boot_milliseconds: int
    container_milliseconds: int | None  # of the last trial container
    state_bytes: int  # on disk: memory, devices and both disks' changes


class WarmState:
    """The files of one warm state, each to be opened read-only or through an overlay."""

    def __init__(self, directory: Path, image: ImageRef, shape: Shape, accelerator: Accelerator) -> None:
        self.directory = directory
        self.device_state = directory / STATE
        self._image = image
        self._shape = shape
        self._accelerator = accelerator

    def facts(self) -> WarmFacts:
        """What it is tied to and what it cost."""
        return WarmFacts.model_validate_json((self.directory / FACTS).read_bytes())

    def hardware(self, directory: Path, *, egress_socket: str | None) -> Hardware:
        """Fresh overlays in a lease's directory, and the hardware that restores this state on them."""
        overlay(self.directory / ROOT, directory / ROOT)
        if self._shape.scratch_bytes is not None:
            overlay(self.directory / SCRATCH, directory / SCRATCH)
        return hardware(
            self._image, self._shape, self._accelerator, directory,
            memory=self.directory / MEMORY, making=False, egress_socket=egress_socket,
        )  # fmt: skip


def ensure_warm(
    image: ImageRef, shape: Shape, accelerator: Accelerator, *, clock: Clock, entropy: Entropy, credentials: Credentials
) -> WarmState:
    """The warm state of that image on that hardware, made now if it is not there.

    Raises SandboxLost when the machine does not boot; its console log stays in the image's directory.
    """
    directory = image.path / "warm" / warm_key(shape, accelerator)
    if not (directory / FACTS).is_file():
        directory.parent.mkdir(exist_ok=True)
        with _locked(image.path / "warm" / "lock"):
            if not (directory / FACTS).is_file():
                _make(directory, image, shape, accelerator, clock, entropy, credentials)
    return WarmState(directory, image, shape, accelerator)


def warm_key(shape: Shape, accelerator: Accelerator) -> str:
    """Names what a saved state can be restored on: another QEMU, processor or shape needs another state."""
    parts = [FORMAT, qemu_version(), accelerator, cpu_model(accelerator), MACHINE, qemu_process.KERNEL_ARGUMENTS]
    text = json.dumps([*parts, shape.model_dump()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cpu_model(accelerator: Accelerator) -> str:
    """What `-cpu` gives the guest: the host's own model under KVM, QEMU's under emulation."""
    if accelerator is Accelerator.TCG:
        return "max"
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "host")


def overlay(backing: Path, out: Path) -> None:
    """A copy-on-write disk over another. Raises DiskFull or SandboxLost."""
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(backing), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "No space left" in done.stderr:
            raise DiskFull(f"{out}: {done.stderr.strip()}")
        raise SandboxLost(f"{out}: qemu-img: {done.stderr.strip()}")


def hardware(
    image: ImageRef,
    shape: Shape,
    accelerator: Accelerator,
    directory: Path,
    *,
    memory: Path,
    making: bool,
    egress_socket: str | None,
) -> Hardware:
    """The machine of a shape with its writable disks in `directory`."""
    return Hardware(
        shape=shape,
        accelerator=accelerator,
        kernel=str(image.path / image_bake.KERNEL),
        initrd=str(image.path / image_bake.INITRD),
        root_disk=str(directory / ROOT),
        scratch_disk=str(directory / SCRATCH) if shape.scratch_bytes is not None else None,
        harness_disk=str(image.path / image_bake.HARNESSES) if shape.harnesses else None,
        memory_file=str(memory),
        memory_shared=making,
        egress_socket=egress_socket,
        incoming=not making,
    )


def _make(
    directory: Path,
    image: ImageRef,
    shape: Shape,
    accelerator: Accelerator,
    clock: Clock,
    entropy: Entropy,
    credentials: Credentials,
) -> None:
    work = directory.with_name(f"{directory.name}.tmp")
    qemu_process.kill(work, clock)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    overlay(image.path / image_bake.ROOTFS, work / ROOT)
    if shape.scratch_bytes is not None:
        log = image.path / "warm" / "scratch.log"
        image_bake.ext4_image(
            None,
            work / SCRATCH,
            size_bytes=shape.scratch_bytes,
            label="scratch",
            log=log,
            reserved_percent=SCRATCH_RESERVED_PERCENT,
        )
    with (work / MEMORY).open("wb") as file:
        file.truncate(shape.memory_bytes)
    machine = hardware(image, shape, accelerator, work, memory=work / MEMORY, making=True, egress_socket=None)
    started = clock.monotonic_seconds()
    channel = Channel(work, credentials, clock, entropy)
    try:
        qemu_process.start(
            qemu_process.command_line(f"warm-{directory.name}", work, machine),
            work,
            clock,
            lifetime_seconds=MAKE_SECONDS,
        )
        with Qmp(work, clock):
            pass
        channel.connect(timeout_seconds=BOOT_SECONDS)
        booted = clock.monotonic_seconds()
        trial = _settle(channel, shape, clock)
        channel.close()
        clock.sleep(SETTLE_SECONDS)
        with Qmp(work, clock) as qmp:
            qmp.save_state(work / STATE)
    finally:
        channel.close()
        qemu_process.kill(work, clock)
    facts = WarmFacts(
        qemu=qemu_version(),
        accelerator=accelerator,
        cpu_model=cpu_model(accelerator),
        machine=MACHINE,
        shape=shape,
        boot_milliseconds=round((booted - started) * 1000),
        container_milliseconds=trial,
        state_bytes=sum(
            (work / name).stat().st_blocks * 512 for name in (MEMORY, STATE, ROOT, SCRATCH) if (work / name).exists()
        ),
    )
    for name in qemu_process.RUNTIME_FILES:
        (work / name).unlink(missing_ok=True)
    (work / FACTS).write_text(facts.model_dump_json(indent=2), encoding="utf-8")
    os.sync()
    shutil.rmtree(directory, ignore_errors=True)
    work.replace(directory)


def _settle(channel: Channel, shape: Shape, clock: Clock) -> int | None:
    """Wait until everything the image starts is up; with an engine, run a trial container and return its duration."""
    jobs = 'for i in $(seq 200); do [ -z "$(systemctl list-jobs --no-legend)" ] && exit 0; sleep 0.5; done; exit 1'
    _expect(channel, jobs, "the machine's units do not settle")
    if not shape.harnesses:
        return None
    ping = "for i in $(seq 100); do printf 'GET /_ping HTTP/1.0\\r\\n\\r\\n' | socat - UNIX:/run/user/1000/engine.sock"
    _expect(channel, f"{ping} 2>/dev/null | grep -q '^OK' && exit 0; sleep 0.5; done; exit 1", "no container engine")
    _expect(channel, "systemctl start fairtrial-egress.service", "the relay to the egress proxy does not start")
    containers = DockerContainers(lambda: engine_stream(channel))
    elapsed = 0.0
    try:
        for number, (image, argv) in enumerate(_trials(_harness_images(channel))):
            before = clock.monotonic_seconds()
            spec = ContainerSpec(
                name=f"trial-{number}", image=image, argv=argv, env={}, mounts=(), limits=SandboxLimits()
            )
            if containers.run(spec, timeout_seconds=TRIAL_SECONDS).exit_code != 0:
                raise SandboxLost(f"the trial container of {image} failed")
            elapsed = clock.monotonic_seconds() - before
    finally:
        containers.close()
    return round(elapsed * 1000)


def _harness_images(channel: Channel) -> list[str]:
    """The harness images in the machine's store, by name."""
    command = "printf 'GET /images/json HTTP/1.0\\r\\n\\r\\n' | socat - UNIX:/run/user/1000/engine.sock"
    listed = channel.exec(command, stdin=b"", timeout_seconds=BOOT_SECONDS, output_bytes_max=2**20)
    return sorted(set(re.findall(r"localhost/(harness-[a-z0-9-]+):", listed.stdout.decode(errors="replace"))))


def _trials(harnesses: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Containers that are run before the state is saved: what they read stays in the guest's memory for every lease."""
    probe = [("probe", ("true",))] * PROBE_RUNS
    return [*((name, ("/usr/bin/python3", "-I", "-c", SHIM_IMPORTS)) for name in harnesses), *probe]


def _expect(channel: Channel, command: str, complaint: str) -> None:
    result = channel.exec(command, stdin=b"", timeout_seconds=BOOT_SECONDS, output_bytes_max=4096)
    if result.exit_code != 0:
        raise SandboxLost(f"{complaint}: {result.stderr.decode(errors='replace')[:200]}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
