"""What only a real machine can show: its walls, its limits, its clock, and that it dies by itself."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.adapters.image_store import ImageStore
from controller.adapters.pool_qemu import QemuPool
from controller.adapters.qemu_process import processes
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.limits import SandboxLimits
from controller.errors import ControllerFault, SandboxLost
from controller.ports.containers import ContainerSpec, Mount
from controller.ports.pool import SandboxRole
from tests.world.machines import IMAGES, VERIFIER_LIMITS, Machines, qemu_machines

pytestmark = pytest.mark.vm

EGRESS = "/run/fairtrial/egress.sock"
READ_BACK = """
cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max
cat /proc/net/dev /proc/net/route | grep -c :
(echo > /root-is-writable) 2>&1 | grep -c Read-only
dd if=/dev/zero of=/workspace/big bs=1048576 count=8 2>/dev/null && stat -c %s /workspace/big
"""
ASK = """
import socket, sys
kind, address = socket.AF_UNIX, sys.argv[1]
if not address.startswith("/"):
    kind, address = socket.AF_INET, (address.split(":")[0], int(address.split(":")[1]))
stream = socket.socket(kind)
stream.settimeout(float(sys.argv[2]))
try:
    stream.connect(address)
    stream.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print(b"".join(iter(lambda: stream.recv(4096), b"")).decode())
except OSError as error:
    print("refused", error)
"""


class _Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nanswer from the proxy\n")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with qemu_machines(tmp_path) as found:
        yield found


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[str]:
    """A stand-in for the egress proxy, on a Unix socket of the host."""
    path = tmp_path / "egress.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), _Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield str(path)
        server.shutdown()


def test_a_runner_has_one_way_out_and_its_container_has_its_limits(machines: Machines, proxy: str) -> None:
    limits = SandboxLimits()
    spec = machines.spec(machines.runner.digest, role=SandboxRole.RUNNER, limits=limits, egress_socket=proxy)
    sandbox = machines.pool.lease(spec)
    assert b"answer from the proxy" in sandbox.exec(["python3", "-c", ASK, EGRESS, "50"]).stdout
    for address in ("10.0.2.100:8080", "10.0.2.2:22", "10.0.2.3:53", "169.254.169.254:80"):
        assert sandbox.exec(["python3", "-c", ASK, address, "2"]).stdout.startswith(b"refused"), address
    assert sandbox.exec(["sh", "-c", "mkdir -p /scratch/attempt/w && chown runner: /scratch/attempt/w"]).exit_code == 0
    with sandbox.containers() as containers:
        ended = containers.run(
            ContainerSpec(
                name="attempt",
                image="probe",
                argv=("sh", "-c", READ_BACK),
                env={},
                mounts=(Mount(source="/scratch/attempt/w", target="/workspace", writable=True),),
                limits=limits,
            ),
            timeout_seconds=300,
        )
    assert ended.output.decode().split("\n") == [
        "300000 100000", str(limits.memory_bytes), str(limits.processes), "1", "1", str(8 * 2**20), "",
    ]  # fmt: skip
    assert ended.exit_code == 0
    blocks = sandbox.exec(["stat", "-f", "-c", "%b %S", "/scratch"]).stdout.split()
    assert 0.95 * limits.disk_bytes < int(blocks[0]) * int(blocks[1]) <= limits.disk_bytes
    sandbox.exec(["ln", "-s", "/etc/shadow", "/scratch/attempt/w/link"])
    with pytest.raises(SandboxLost):
        sandbox.read_file("/scratch/attempt/w/link", bytes_max=10_000)


def test_a_verifier_meets_no_network_and_siblings_share_neither_clock_nor_randomness(machines: Machines) -> None:
    seen = []
    for name in ("one", "two"):
        spec = machines.spec(machines.verifier.digest, name=name, limits=VERIFIER_LIMITS)
        sandbox = machines.pool.lease(spec)
        seen.append(sandbox.exec(["head", "-c", "16", "/dev/urandom"]).stdout)
        clock = int(sandbox.exec(["date", "+%s"]).stdout)
        assert abs(clock - SystemClock().now() // 1000) <= 10
        assert sandbox.exec(["ls", "/sys/class/net", "/sys/block"]).stdout.split() == [
            b"/sys/block:", b"vda", b"/sys/class/net:", b"lo",
        ]  # fmt: skip
        with pytest.raises(ControllerFault), sandbox.containers():
            pass
        machines.pool.destroy(name, generation=1)
    assert seen[0] != seen[1]


def test_a_controller_that_restarts_adopts_its_machine(machines: Machines) -> None:
    spec = machines.spec(machines.verifier.digest, limits=VERIFIER_LIMITS)
    machines.pool.lease(spec).write_file("/srv/mark", b"before")
    machines.pool.disconnect()
    restarted = QemuPool(ImageStore(IMAGES), machines.state_dir, SystemClock(), SystemEntropy())
    found = restarted.find(spec.name)
    assert found is not None
    assert found.read_file("/srv/mark", bytes_max=10) == b"before"
    assert restarted.lease(spec).facts.created_at == found.facts.created_at
    restarted.destroy(spec.name, generation=1)


def test_a_machine_dies_at_its_deadline_whoever_forgets_it(machines: Machines) -> None:
    spec = machines.spec(machines.verifier.digest, limits=VERIFIER_LIMITS, lifetime_seconds=40)
    machines.pool.lease(spec)
    directory = machines.directory(spec.name)
    assert processes(directory)
    deadline = time.monotonic() + 60
    while processes(directory) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes(directory) == ()
    assert [facts.alive for facts in machines.pool.inventory()] == [False]
