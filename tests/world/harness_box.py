"""A machine that runs harness containers, and the far end of its egress socket: health check and result service."""

from __future__ import annotations

import hashlib
import http.server
import io
import socketserver
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from controller import run as run_stage
from controller.adapters.image_store import ImageStore
from controller.adapters.pool_podman import PREFIX, PodmanPool
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId
from controller.domain.instant import InstantMs
from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits
from controller.domain.receipt import Collected, RunOrder, RunResult
from controller.errors import InvalidInput, MissingImage, SandboxLost
from controller.ports.ledger import UploadGrant
from controller.ports.pool import Isolation, Sandbox, SandboxRole
from tests.world.artifacts import MemoryArtifacts
from tests.world.machines import IMAGES, Machines, qemu_machines

IMAGE: Final = "harness-mini-swe-agent"
TOKEN: Final = "up_0123456789abcdef"
CANARY: Final = "canary_" + "c" * 64
LIMITS: Final = ArtifactLimits()
ENVIRONMENT: Final = {"PATH": "/opt/harness/bin:/usr/bin:/bin", "HOME": "/home/agent", "METER": "rt_run-token"}
BASE: Final = {"a.py": b"print(1)\n", "src/b.txt": b"hello\n"}


class FarEnd:
    """What stands behind the egress socket. `health` is the status of the health check; every request is remembered."""

    def __init__(self, socket_path: str, artifacts: MemoryArtifacts, clock: SystemClock) -> None:
        self.health = 200
        self.refused: list[str] = []
        far_end = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._say(far_end.health if self.path == "/healthz" else 403)

            def do_PUT(self) -> None:
                _, _, attempt, name = self.path.split("/")
                data = self.rfile.read(int(self.headers["Content-Length"]))
                token = hashlib.sha256(self.headers["Authorization"].removeprefix("Bearer ").encode()).hexdigest()
                grant = artifacts.find_grant(AttemptId(attempt), name, token)
                try:
                    if grant is None:
                        raise InvalidInput("no such grant")
                    artifacts.store(grant, data, at=clock.now())
                except InvalidInput:
                    far_end.refused.append(self.path)
                    self._say(403)
                    return
                self._say(200)

            def _say(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def address_string(self) -> str:
                return "guest"

            def log_message(self, *arguments: Any) -> None:
                """Quiet."""

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

            def get_request(self) -> tuple[Any, Any]:
                request, _ = super().get_request()
                return request, ("guest", 0)

        self._server = Server(socket_path, Handler)
        Path(socket_path).chmod(0o666)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Outcome:
    """One carried-out order."""

    result: RunResult
    collected: Collected
    mismatches: tuple[str, ...]

    @property
    def log(self) -> str:
        return self.collected.log.decode("utf-8", "replace")


@dataclass
class HarnessBox:
    """A leased runner. Orders are carried out one after another, each as an attempt of its own."""

    sandbox: Sandbox
    isolation: Isolation
    artifacts: MemoryArtifacts
    far_end: FarEnd
    clock: SystemClock
    orders: int = field(default=0)

    def order(
        self, script: str, *, seconds: int = 60, limits: Mapping[str, int] | None = None, **rest: Any
    ) -> RunOrder:
        """An order to run a shell script in place of a harness; its uploads are granted."""
        self.orders += 1
        attempt_id = f"att-test-{self.orders}"
        granted = tuple(
            UploadGrant(
                attempt_id=AttemptId(attempt_id),
                token_sha256=hashlib.sha256(TOKEN.encode()).hexdigest(),
                name=name,
                bytes_max=bytes_max,
                expires_at=InstantMs(self.clock.now() + 3_600_000),
            )
            for name, bytes_max in run_stage.artifact_sizes(LIMITS).items()
        )
        self.artifacts.grant(granted)
        contract = LaunchContract(
            argv=("/bin/bash", "-c", script),
            env=ENVIRONMENT,
            files={".config/harness.toml": "x = 1\n"},
            stdin="the prompt",
            report_paths=("report.json",),
        )
        return RunOrder(
            attempt_id=attempt_id,
            image=IMAGE,
            workspace_tar=base_tar(),
            contract=contract,
            limits=SandboxLimits.model_validate({"agent_seconds": seconds, **(limits or {})}),
            artifact_limits=LIMITS,
            upload_token=TOKEN,
            canary=CANARY,
            **rest,
        )

    def carry_out(self, order: RunOrder) -> Outcome:
        """Execute and collect."""
        result = run_stage.execute(self.sandbox, order)
        collected = run_stage.collect(self.artifacts, AttemptId(order.attempt_id), LIMITS)
        found = run_stage.receipt_mismatches(
            collected.receipt, order.limits, isolation=self.isolation, probe_names=order.probe_names
        )
        return Outcome(result, collected, found)

    def run(self, script: str, **order: Any) -> Outcome:
        """Carry out a script that ends with a complete set of artifacts."""
        outcome = self.carry_out(self.order(script, **order))
        assert (outcome.mismatches, outcome.collected.missing) == ((), ())
        return outcome


def base_tar() -> bytes:
    """The base of every order, without a `.git`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in BASE.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


@contextmanager
def harness_box(place: str, directory: Path) -> Iterator[HarnessBox]:
    """A box in `podman` or `qemu`; skips the test where that is not possible."""
    clock = SystemClock()
    artifacts = MemoryArtifacts(clock)
    egress = str(directory / "egress.sock")
    far_end = FarEnd(egress, artifacts, clock)
    try:
        with _podman(egress) if place == "podman" else _qemu(directory, egress) as (sandbox, isolation):
            yield HarnessBox(sandbox, isolation, artifacts, far_end, clock)
    finally:
        far_end.close()


@contextmanager
def podman_pool() -> Iterator[PodmanPool]:
    """A podman pool without machines before and after; skips the test where this host's podman starts none."""
    # One storage for all runs: importing an image takes longer than every test together.
    pool = PodmanPool(ImageStore(IMAGES), IMAGES.parent / "test-podman", SystemClock())
    pool.reap(at=InstantMs(2**53))
    try:
        pool.lease(Machines.spec("sha256:" + "0" * 64, name="trial"))
        pool.destroy("trial", generation=1)
    except (MissingImage, SandboxLost) as error:
        pytest.skip(f"no podman pool here: {error}")
    try:
        yield pool
    finally:
        pool.reap(at=InstantMs(2**53))
    assert pool.inventory() == ()


def kill_container(pool: PodmanPool, name: str) -> None:
    """End a machine behind its pool's back."""
    assert pool.podman("kill", f"{PREFIX}{name}").exit_code == 0


@contextmanager
def _podman(egress: str) -> Iterator[tuple[Sandbox, Isolation]]:
    with podman_pool() as pool:
        spec = Machines.spec("sha256:" + "0" * 64, role=SandboxRole.RUNNER, egress_socket=egress)
        yield pool.lease(spec), pool.isolation


@contextmanager
def _qemu(directory: Path, egress: str) -> Iterator[tuple[Sandbox, Isolation]]:
    with qemu_machines(directory / "pool") as machines:
        spec = machines.spec(
            machines.runner.digest, role=SandboxRole.RUNNER, egress_socket=egress, lifetime_seconds=3600
        )
        yield machines.pool.lease(spec), machines.pool.isolation
