"""The command line of a machine, and that only its own processes are ever killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from controller.adapters import qemu_process
from controller.adapters.qemu_process import Accelerator, Hardware, Shape
from controller.adapters.system_clock import SystemClock


def hardware(*, network: bool, egress_socket: str | None = None, runner: bool = True) -> Hardware:
    shape = Shape(
        cpus=4, memory_bytes=2**33, scratch_bytes=2**34 if runner else None, harnesses=runner, network=network
    )
    return Hardware(
        shape=shape,
        accelerator=Accelerator.TCG,
        kernel="/i/vmlinuz",
        initrd="/i/initrd",
        root_disk="/m/root",
        scratch_disk="/m/scratch" if runner else None,
        harness_disk="/i/harnesses" if runner else None,
        memory_file="/w/memory",
        memory_shared=False,
        egress_socket=egress_socket,
        incoming=True,
    )


def test_a_verifier_has_no_network_device_and_no_second_disk(tmp_path: Path) -> None:
    command = qemu_process.command_line("v", tmp_path, hardware(network=False, runner=False))
    assert command[command.index("-nic") + 1] == "none"
    assert not [word for word in command if "netdev" in word or "virtio-net" in word]
    assert sum(word.startswith("if=none") for word in command) == 1


def test_a_runner_reaches_one_address_and_the_harness_disk_is_read_only(tmp_path: Path) -> None:
    command = qemu_process.command_line("r", tmp_path, hardware(network=True, egress_socket="/s/a b,c.sock"))
    (netdev,) = [word for word in command if word.startswith("user,")]
    assert netdev.startswith("user,id=net,restrict=on,ipv6=off,guestfwd=tcp:10.0.2.100:8080-cmd:")
    assert netdev.endswith("socat STDIO UNIX-CONNECT:'/s/a b,,c.sock'")  # commas doubled for QEMU, blanks quoted
    assert not [word for word in command if "hostfwd" in word]
    (disk,) = [word for word in command if "/i/harnesses" in word]
    assert "readonly=on" in disk


def test_a_network_without_a_socket_leads_nowhere(tmp_path: Path) -> None:
    command = qemu_process.command_line("r", tmp_path, hardware(network=True))
    assert "user,id=net,restrict=on,ipv6=off" in command


def test_only_processes_that_name_the_pid_file_are_killed(tmp_path: Path) -> None:
    ours, other = tmp_path / "a", tmp_path / "ab"
    script = ["timeout", "--kill-after=1", "20", "sh", "-c", "echo; exec sleep 20"]
    started = {
        directory: subprocess.Popen([*script, str(directory / "pid")], stdout=subprocess.PIPE)
        for directory in (ours, other)
    }
    reader = subprocess.Popen(["sleep", "20"])
    try:
        for process in started.values():
            assert process.stdout is not None and process.stdout.readline() == b"\n"
        assert qemu_process.processes(ours) == (started[ours].pid,)
        assert qemu_process.kill(ours, SystemClock()) == (started[ours].pid,)
        assert started[ours].wait(timeout=10) == -9
        assert qemu_process.processes(ours) == ()
        assert (started[other].poll(), reader.poll()) == (None, None)
    finally:
        for process in (*started.values(), reader):
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def test_killing_a_machine_that_never_was_finds_nothing(tmp_path: Path) -> None:
    assert qemu_process.kill(tmp_path / "none", SystemClock()) == ()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Accelerator.KVM, ["-accel", "kvm", "-cpu", "host"]),
        (Accelerator.TCG, ["-accel", "tcg,thread=multi", "-cpu", "max"]),
    ],
)
def test_each_accelerator_has_its_processor(kind: Accelerator, words: list[str]) -> None:
    assert qemu_process.accelerator_arguments(kind) == words
