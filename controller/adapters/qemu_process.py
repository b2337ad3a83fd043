"""QEMU processes: the command line, the birth with a deadline, QMP, and finding and ending them by what /proc says."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from controller.domain.record import Record
from controller.errors import MissingProgram, SandboxLost
from controller.ports.clock import Clock

QEMU: Final = "qemu-system-x86_64"
MACHINE: Final = "q35"
QMP_SOCKET, CONSOLE_LOG, QEMU_LOG = "qmp.sock", "console.log", "qemu.log"
RUNTIME_FILES: Final = ("pid", QMP_SOCKET, "control.sock", "ssh.sock")
PROXY_ADDRESS: Final = "10.0.2.100:8080"
QMP_SECONDS: Final = 60.0
KERNEL_ARGUMENTS: Final = (
    "console=ttyS0 loglevel=4 net.ifnames=0 ipv6.disable=1 panic=-1 mitigations=off printk.devkmsg=off"
    " systemd.show_status=false random.trust_cpu=on audit=0"
)

_children: Final[list[subprocess.Popen[bytes]]] = []  # ours to wait for, so that none stays a zombie


class Accelerator(StrEnum):
    """How the guest's instructions run."""

    KVM = "kvm"
    TCG = "tcg"


class Shape(Record):
    """The virtual hardware, which a warm state fixes: what is restored must be what was saved."""

    cpus: int
    memory_bytes: int
    scratch_bytes: int | None  # the second disk, for container layers and workspaces
    harnesses: bool  # the third disk: read-only harness images
    network: bool


class Hardware(Record):
    """One machine's files. All paths are absolute."""

    shape: Shape
    accelerator: Accelerator
    kernel: str
    initrd: str
    root_disk: str
    scratch_disk: str | None
    harness_disk: str | None
    memory_file: str
    memory_shared: bool  # True only while a warm state is made: the guest's memory is then the file itself
    egress_socket: str | None
    incoming: bool


def command_line(name: str, directory: Path, hardware: Hardware) -> list[str]:
    """The QEMU command, to run in `directory`: sockets are relative. The pid file's path marks the process as ours."""
    shape = hardware.shape
    share = "on" if hardware.memory_shared else "off"
    memory = (
        f"memory-backend-file,id=ram,size={shape.memory_bytes},mem-path={_value(hardware.memory_file)},share={share}"
    )
    command = [QEMU, "-name", f"fairtrial-{name}", "-pidfile", str(directory / "pid"), "-nodefaults", "-no-user-config"]
    command += ["-display", "none", "-no-reboot", "-sandbox", "on,obsolete=deny"]
    command += ["-machine", f"{MACHINE},memory-backend=ram", *accelerator_arguments(hardware.accelerator)]
    command += ["-smp", str(shape.cpus), "-m", f"{shape.memory_bytes // 2**20}M", "-object", memory]
    command += ["-kernel", hardware.kernel, "-initrd", hardware.initrd, "-append", KERNEL_ARGUMENTS]
    command += _disk("root", hardware.root_disk, readonly=False)
    if hardware.scratch_disk is not None:
        command += _disk("scratch", hardware.scratch_disk, readonly=False)
    if hardware.harness_disk is not None:
        command += _disk("harnesses", hardware.harness_disk, readonly=True)
    command += ["-device", "virtio-rng-pci", "-serial", f"file:{CONSOLE_LOG}"]
    command += ["-device", "virtio-serial-pci"]
    for port in ("control", "ssh"):
        command += ["-chardev", f"socket,id={port},path={port}.sock,server=on,wait=off"]
        command += ["-device", f"virtserialport,chardev={port},name=fairtrial.{port}"]
    command += ["-qmp", f"unix:{QMP_SOCKET},server=on,wait=off"]
    command += _network(hardware) if shape.network else ["-nic", "none"]
    return [*command, "-incoming", "defer"] if hardware.incoming else command


def accelerator_arguments(accelerator: Accelerator) -> list[str]:
    """`-accel` and `-cpu`."""
    if accelerator is Accelerator.KVM:
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def start(command: list[str], directory: Path, clock: Clock, *, lifetime_seconds: int) -> None:
    """Start the machine in a session of its own, under `timeout`: it dies at its deadline whoever forgets it.

    It outlives this process on purpose, so that a controller that restarts can adopt it. Returns when /proc shows it.
    """
    wrapped = ["timeout", "--kill-after=5", str(lifetime_seconds), *command]
    with (directory / QEMU_LOG).open("ab") as log:
        try:
            child = subprocess.Popen(
                wrapped,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_environment(),
            )
        except FileNotFoundError as error:
            raise MissingProgram(f"{error.filename} is not installed") from error
    _children.append(child)
    # Between its exec and the kernel's copy of the arguments a process has no command line, and nobody would find it.
    while child.poll() is None and not processes(directory):
        clock.sleep(0.001)


def processes(directory: Path) -> tuple[int, ...]:
    """The ids of the live processes (QEMU and its wrapper) that name this machine's pid file, read from /proc."""
    marker = str(directory / "pid").encode()
    return tuple(pid for pid in _all_pids() if _is_ours(pid, marker))


def kill(directory: Path, clock: Clock, *, seconds_max: float = 15.0) -> tuple[int, ...]:
    """Kill the machine's processes and wait until /proc shows none. Returns the ids that were seen.

    Raises SandboxLost when one does not die.
    """
    marker = str(directory / "pid").encode()
    seen: dict[int, None] = {}
    deadline = clock.monotonic_seconds() + seconds_max
    while found := processes(directory):
        for pid in found:
            seen[pid] = None
            _kill_checked(pid, marker)
        if clock.monotonic_seconds() > deadline:
            raise SandboxLost(f"{directory.name}: processes {found} do not die")
        clock.sleep(0.02)
        _reap_children()
    return tuple(seen)


class Qmp:
    """A QMP connection, for one short dialogue."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._clock = clock
        self._name = directory.name
        self._stream = _connect_when_ready(directory, clock)
        self._file = self._stream.makefile("rwb")
        self._read()
        self.call("qmp_capabilities")

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._stream.close()

    def call(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """The `return` value. Raises SandboxLost on an error or a closed connection."""
        request = {"execute": command, "arguments": arguments or {}}
        try:
            self._file.write(json.dumps(request).encode() + b"\n")
            self._file.flush()
            while True:
                answer = self._read()
                if "error" in answer:
                    raise SandboxLost(f"{self._name}: QMP {command}: {answer['error'].get('desc')}")
                if "return" in answer:
                    return answer["return"]
        except OSError as error:
            raise SandboxLost(f"{self._name}: QMP {command}: {error}") from error

    def save_state(self, path: Path) -> None:
        """Stop the machine and write its device state; its shared memory file is the rest of the state."""
        self._ignore_shared()
        self.call("stop")
        self.call("migrate", {"uri": f"exec:cat > {shlex.quote(str(path))}"})
        self._wait_for("query-migrate", {"completed"}, {"failed", "cancelled"})

    def restore_state(self, path: Path) -> None:
        """Load the device state into a machine started with `incoming`, and let it run."""
        self._ignore_shared()
        self.call("migrate-incoming", {"uri": f"exec:cat {shlex.quote(str(path))}"})
        self._wait_for("query-migrate", {"completed"}, {"failed", "cancelled"})
        self.call("cont")

    def _ignore_shared(self) -> None:
        self.call("migrate-set-capabilities", {"capabilities": [{"capability": "x-ignore-shared", "state": True}]})

    def _wait_for(self, query: str, good: set[str], bad: set[str]) -> None:
        deadline = self._clock.monotonic_seconds() + QMP_SECONDS
        while True:
            status = self.call(query).get("status")
            if status in good:
                return
            if status in bad or self._clock.monotonic_seconds() > deadline:
                raise SandboxLost(f"{self._name}: {query} is {status}")
            self._clock.sleep(0.01)

    def _read(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise SandboxLost(f"{self._name}: QEMU closed its control socket")
        answer: dict[str, Any] = json.loads(line)
        return answer


def connect_socket(directory: Path, name: str, timeout_seconds: float) -> socket.socket:
    """Connect to a Unix socket of the machine. Raises OSError.

    A socket's path may have 107 bytes; through /proc the directory's own length does not count.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(timeout_seconds)
        stream.connect(f"/proc/self/fd/{descriptor}/{name}")
    except OSError:
        stream.close()
        raise
    finally:
        os.close(descriptor)
    return stream


def _connect_when_ready(directory: Path, clock: Clock) -> socket.socket:
    deadline = clock.monotonic_seconds() + QMP_SECONDS
    while True:
        try:
            return connect_socket(directory, QMP_SOCKET, QMP_SECONDS)
        except OSError as error:
            if clock.monotonic_seconds() > deadline or not _lives(directory):
                raise SandboxLost(f"{directory.name}: QEMU did not start: {_tail(directory / QEMU_LOG)}") from error
            clock.sleep(0.01)


def _lives(directory: Path) -> bool:
    _reap_children()
    return bool(processes(directory))


def _disk(name: str, file: str, *, readonly: bool) -> list[str]:
    mode = "on" if readonly else "off"
    # cache=unsafe: a machine's disk does not outlive it, so nothing it flushes needs to reach the platter.
    drive = f"if=none,id={name},file={_value(file)},format=qcow2,readonly={mode},cache=unsafe"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name}"]


def _network(hardware: Hardware) -> list[str]:
    forward = ""
    if hardware.egress_socket is not None:
        relay = f"socat STDIO UNIX-CONNECT:{shlex.quote(hardware.egress_socket)}"
        forward = f",guestfwd=tcp:{PROXY_ADDRESS}-cmd:{_value(relay)}"
    return ["-netdev", f"user,id=net,restrict=on,ipv6=off{forward}", "-device", "virtio-net-pci,netdev=net"]


def _value(text: str) -> str:
    return text.replace(",", ",,")


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _all_pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _is_ours(pid: int, marker: bytes) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    program = arguments[0].rsplit(b"/", 1)[-1]
    return program in (b"timeout", QEMU.encode()) and marker in arguments


def _kill_checked(pid: int, marker: bytes) -> None:
    # The descriptor pins the process; only then is its command line read, so a recycled id is never hit.
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if _is_ours(pid, marker):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _reap_children() -> None:
    for child in list(_children):
        if child.poll() is not None:
            _children.remove(child)


def _tail(path: Path, bytes_max: int = 400) -> str:
    try:
        return path.read_bytes()[-bytes_max:].decode(errors="replace").strip()
    except OSError:
        return "no log"
