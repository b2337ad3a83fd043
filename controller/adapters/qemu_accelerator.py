"""KVM or emulation, decided by booting a kernel: /dev/kvm can exist and hang."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from controller.adapters.qemu_process import MACHINE, QEMU, Accelerator, accelerator_arguments
from controller.domain.record import Record
from controller.errors import MachineUnsupported, MissingProgram

PROBE_SECONDS: Final = 6  # a working KVM prints its first line within one second
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
KVM_DEVICE: Final = Path("/dev/kvm")


class AcceleratorProbe(Record):
    """What the probe found, valid for one boot of this host."""

    boot_id: str
    accelerator: Accelerator
    reason: str


def accelerator(kernel: Path, cache: Path) -> AcceleratorProbe:
    """The accelerator of this machine; `cache` keeps the answer until the host boots again.

    Raises MissingProgram without QEMU.
    """
    boot_id = BOOT_ID.read_text(encoding="ascii").strip()
    try:
        known = AcceleratorProbe.model_validate_json(cache.read_bytes())
        if known.boot_id == boot_id:
            return known
    except (OSError, ValueError):
        pass
    kind, reason = _probe(kernel)
    found = AcceleratorProbe(boot_id=boot_id, accelerator=kind, reason=reason)
    cache.parent.mkdir(parents=True, exist_ok=True)
    temporary = cache.with_suffix(f".{os.getpid()}")
    temporary.write_text(found.model_dump_json(), encoding="utf-8")
    temporary.replace(cache)
    return found


def qemu_version() -> str:
    """The first line of `qemu-system-x86_64 --version`. Raises MissingProgram."""
    try:
        output = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    except FileNotFoundError as error:
        raise MissingProgram(f"{QEMU} is not installed") from error
    except subprocess.SubprocessError as error:
        raise MachineUnsupported(f"{QEMU} --version: {error}") from error
    return output.splitlines()[0].strip()


def _probe(kernel: Path) -> tuple[Accelerator, str]:
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return Accelerator.TCG, f"{KVM_DEVICE} is absent or not ours to open"
    command = [QEMU, "-machine", MACHINE, *accelerator_arguments(Accelerator.KVM), "-m", "256M", "-nodefaults"]
    command += ["-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel)]
    command += ["-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(
            ["timeout", "--signal=KILL", str(PROBE_SECONDS), *command], capture_output=True, timeout=PROBE_SECONDS + 5
        )
    except FileNotFoundError as error:
        raise MissingProgram(f"{error.filename} is not installed") from error
    except subprocess.TimeoutExpired:
        return Accelerator.TCG, "a kernel started under KVM hangs and its process does not die"
    if b"Linux version" in done.stdout:
        return Accelerator.KVM, "a kernel booted under KVM"
    last = done.stderr.decode(errors="replace").strip().splitlines()
    return Accelerator.TCG, f"a kernel started under KVM said nothing ({last[-1][:120] if last else 'hang'})"
