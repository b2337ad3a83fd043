"""The rootless container engine inside a sandbox, as far as an attempt needs it."""

from __future__ import annotations

from typing import Protocol

from controller.domain.limits import SandboxLimits
from controller.domain.record import Record


class Mount(Record):
    """A bind mount from the machine into the container."""

    source: str
    target: str
    writable: bool


class ContainerSpec(Record):
    """One container with a loopback-only network; its environment holds no secret but the run-scoped token."""

    name: str
    image: str  # by name in the machine's read-only image store; its digest was checked at bake
    argv: tuple[str, ...]
    env: dict[str, str]
    mounts: tuple[Mount, ...]
    limits: SandboxLimits
    seccomp_profile: str | None = None  # a file of the machine; None means the engine's own filter


class ContainerExit(Record):
    """How the container ended. `exit_code` is None when it was still running at the deadline and had to be killed."""

    exit_code: int | None
    oom_killed: bool
    output: bytes  # what PID 1 printed, bounded; harness output goes to a bounded file instead


class Containers(Protocol):
    def run(self, spec: ContainerSpec, *, timeout_seconds: float, output_bytes_max: int = 2**20) -> ContainerExit:
        """Create, start, wait, remove. Kills every process of the container before it returns.

        Raises SandboxLost when the engine does not answer.
        """
        ...
