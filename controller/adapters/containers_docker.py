"""The Containers port over the `docker` SDK, spoken to a rootless podman through an SSH channel."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import docker
import paramiko
import requests
import urllib3
from docker.transport.basehttpadapter import BaseHTTPAdapter
from docker.utils.socket import frames_iter

from controller.errors import SandboxLost
from controller.ports.containers import ContainerExit, ContainerSpec

API_VERSION: Final = "1.41"
CALL_SECONDS: Final = 120  # one call of the engine, under emulation and load
INSPECTIONS: Final = 3
TMPFS: Final = {"/tmp": "size=512m,mode=1777,nosuid,nodev", "/run": "size=16m,mode=755,nosuid,nodev"}  # noqa: S108
CAPABILITIES: Final = ("SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE")

ENDED: Final = frozenset({"exited", "stopped", "dead"})

OpenStream = Callable[[], paramiko.Channel]


class DockerContainers:
    """Runs containers one after another, or in parallel from several threads, on one engine."""

    def __init__(self, open_stream: OpenStream) -> None:
        """`open_stream` opens a byte stream to the engine's socket; it may raise SandboxLost."""
        self._api = docker.APIClient(base_url="tcp://localhost:1", version=API_VERSION, timeout=CALL_SECONDS)
        # Under this address the SDK takes the raw stream of a hijacked connection from an SSH channel.
        self._api.base_url = "http+docker://ssh"
        self._api.mount("http+docker://", _ChannelAdapter(open_stream))

    def close(self) -> None:
        """Close every stream to the engine."""
        self._api.close()

    def run(self, spec: ContainerSpec, *, timeout_seconds: float, output_bytes_max: int = 2**20) -> ContainerExit:
        """Create, start, wait, remove. Kills every process of the container before it returns.

        A container of that name that is there already was left by a controller that died: it is waited for, not made
        twice. Raises SandboxLost when the engine does not answer or refuses the container.
        """
        try:
            return self._run(spec, timeout_seconds, output_bytes_max)
        except (
            docker.errors.DockerException,
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            OSError,
        ) as error:
            raise SandboxLost(f"container {spec.name}: the engine failed: {error}") from error

    def _run(self, spec: ContainerSpec, timeout_seconds: float, output_bytes_max: int) -> ContainerExit:
        container, state = self._find(spec.name)
        if container is None:
            container = self._create(spec)
        try:
            if state is not None and state["Status"] in ENDED:
                return ContainerExit(exit_code=int(state["ExitCode"]), oom_killed=bool(state["OOMKilled"]), output=b"")
            stream = self._api.attach_socket(container, {"stdout": 1, "stderr": 1, "stream": 1})
            output = _Output(stream, output_bytes_max)
            if state is None or not state["Running"]:
                self._api.start(container)
            started = time.monotonic()
            state = self._ended(container, output, timeout_seconds, started)
            if state is None:
                self._api.kill(container)
                output.ended(CALL_SECONDS)
                state = self._api.inspect_container(container)["State"]
                return ContainerExit(exit_code=None, oom_killed=bool(state["OOMKilled"]), output=output.collect())
            code = int(state["ExitCode"])
            return ContainerExit(exit_code=code, oom_killed=bool(state["OOMKilled"]), output=output.collect())
        finally:
            self._api.remove_container(container, force=True, v=True)

    def _find(self, name: str) -> tuple[str | None, dict[str, Any] | None]:
        """A container that an earlier controller made and left, with its state."""
        try:
            found = self._api.inspect_container(name)
        except docker.errors.NotFound:
            return None, None
        return str(found["Id"]), found["State"]

    def _create(self, spec: ContainerSpec) -> str:
        """The new container's id. A create that is not answered is asked once more: it starts nothing, and its name
        tells whether the first one took effect."""
        try:
            return self._create_once(spec)
        except requests.ReadTimeout:
            container, _ = self._find(spec.name)
            return container or self._create_once(spec)

    def _create_once(self, spec: ContainerSpec) -> str:
        made = self._api.create_container(
            image=f"localhost/{spec.image}:latest",
            command=list(spec.argv),
            entrypoint=[],
            environment=spec.env,
            name=spec.name,
            host_config=self._host_config(spec),
            volumes=[mount.target for mount in spec.mounts],
        )
        return str(made["Id"])

    def _ended(self, container: str, output: _Output, timeout_seconds: float, started: float) -> dict[str, Any] | None:
        """The container's last state, or None when it still runs after the time.

        The engine's own wait returns only after a clean-up process has come and gone, which costs more than everything
        else under emulation; the end of the output stream comes at once. It is a hint: the state decides.
        """
        if not output.ended(timeout_seconds):
            return None
        for _ in range(INSPECTIONS):
            state: dict[str, Any] = self._api.inspect_container(container)["State"]
            if not state["Running"]:
                return state
        left = timeout_seconds - (time.monotonic() - started)
        try:
            self._api.wait(container, timeout=max(1, math.ceil(left)))
        except (requests.ReadTimeout, TimeoutError):
            return None
        except requests.ConnectionError as error:
            if "timed out" in str(error).lower():
                return None
            raise
        final: dict[str, Any] = self._api.inspect_container(container)["State"]
        return final

    def _host_config(self, spec: ContainerSpec) -> dict[str, Any]:
        limits = spec.limits
        config: dict[str, Any] = self._api.create_host_config(
            binds=[f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}" for mount in spec.mounts],
            network_mode="none",
            cpu_period=100_000,
            cpu_quota=100_000 * limits.cpus,
            mem_limit=limits.memory_bytes,
            memswap_limit=limits.memory_bytes,
            pids_limit=limits.processes,
            cap_drop=["ALL"],
            cap_add=list(CAPABILITIES),
            security_opt=[
                "no-new-privileges",
                *([f"seccomp={spec.seccomp_profile}"] if spec.seccomp_profile else []),
            ],
            read_only=True,
            tmpfs=TMPFS,
            log_config=docker.types.LogConfig(type="none"),
            ipc_mode="private",
        )
        return config


class _Output:
    """Reads what PID 1 prints in a thread of its own, so that a full pipe never stops the container."""

    def __init__(self, stream: Any, bytes_max: int) -> None:
        self._stream = stream
        self._max = bytes_max
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait for the end of the stream; False when it does not come in time."""
        self._thread.join(timeout=seconds)
        return not self._thread.is_alive()

    def collect(self) -> bytes:
        """Everything printed so far."""
        self._stream.close()
        return bytes(self._kept)

    def _read(self) -> None:
        try:
            for _, data in frames_iter(self._stream, tty=False):  # type: ignore[no-untyped-call]
                self._kept += data[: self._max - len(self._kept)]
        except (OSError, paramiko.SSHException):
            return


class _ChannelConnection(urllib3.connection.HTTPConnection):
    """An HTTP connection whose socket is an SSH channel."""

    def __init__(self, open_stream: OpenStream, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._open_stream = open_stream

    def connect(self) -> None:
        channel = self._open_stream()
        channel.settimeout(CALL_SECONDS)
        self.sock = channel


class _ChannelPool(urllib3.connectionpool.HTTPConnectionPool):
    def __init__(self, open_stream: OpenStream) -> None:
        super().__init__("localhost", timeout=CALL_SECONDS, maxsize=8)
        self._open_stream = open_stream

    def _new_conn(self) -> _ChannelConnection:
        return _ChannelConnection(self._open_stream, CALL_SECONDS)

    def _get_conn(self, timeout: float | None = None) -> Any:
        # urllib3 would ask an idle socket whether it is readable, which leaks two descriptors per SSH channel.
        assert self.pool is not None
        try:
            return self.pool.get(block=False) or self._new_conn()
        except queue.Empty:
            return self._new_conn()


class _ChannelAdapter(BaseHTTPAdapter):
    def __init__(self, open_stream: OpenStream) -> None:
        super().__init__()
        self._pool = _ChannelPool(open_stream)

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        return self._pool

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        return self._pool

    def request_url(self, request: Any, proxies: Any) -> str:
        return str(request.path_url)

    def close(self) -> None:
        self._pool.close()
