"""A pool leases disposable machines. One contract suite holds for every pool and for the fake."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.limits import SandboxLimits
from controller.domain.record import Record
from controller.ports.containers import Containers


class SandboxRole(StrEnum):
    RUNNER = "runner"
    VERIFIER = "verifier"


class Isolation(StrEnum):
    """How strong the wall is. Results of `container` isolation can't be published."""

    VM = "vm"
    CONTAINER = "container"


class SandboxSpec(Record):
    """What to lease. The name is the attempt id, so that a controller that restarts finds its machine again."""

    name: str
    role: SandboxRole
    image_digest: Digest
    limits: SandboxLimits
    lifetime_seconds: int
    generation: int
    owner: str
    egress_socket: str | None = None  # a Unix socket on the controller's side; None means no network device at all


class SandboxFacts(Record):
    """One line of a pool's inventory, read from the outside world and not from our memory."""

    name: str
    role: SandboxRole
    generation: int
    owner: str
    created_at: InstantMs
    expires_at: InstantMs
    alive: bool


class DestroyReceipt(Record):
    """What proves a machine is gone: what was looked for, and what was found after the kill."""

    name: str
    generation: int
    existed: bool
    destroyed_at: InstantMs
    proof: str  # for example "pid 4242 absent, overlay unlinked, egress socket closed"


class ExecResult(Record):
    """A command that ran to its end inside the sandbox, whatever its exit code."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool


class Sandbox(Protocol):
    """A leased machine, driven as its root user. A command's failure is a result; a lost machine is `SandboxLost`."""

    @property
    def facts(self) -> SandboxFacts: ...

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        """Run one command as root of the machine. Raises SandboxLost when the machine is gone or the time is over."""
        ...

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Create a file, with its parent directories, owned by root."""
        ...

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        """Read a regular file. Raises SandboxLost when it is absent or larger than `bytes_max`."""
        ...

    def containers(self) -> AbstractContextManager[Containers]:
        """The rootless container engine inside the machine (runner role only)."""
        ...

    def console(self) -> str:
        """The last lines of the machine's console, for a person; never parsed."""
        ...


class Pool(Protocol):
    """Leases, finds and destroys sandboxes."""

    @property
    def name(self) -> str: ...

    @property
    def isolation(self) -> Isolation: ...

    def lease(self, spec: SandboxSpec) -> Sandbox:
        """A booted machine that answers.

        Raises SandboxLost if it does not come up, StaleGeneration if a newer one exists.

        Leasing a name that is already alive at the same generation adopts it.
        """
        ...

    def find(self, name: str) -> Sandbox | None:
        """The live machine of that name, or None."""
        ...

    def destroy(self, name: str, *, generation: int) -> DestroyReceipt:
        """Destroy the sandbox and prove it gone. Succeeds when there is none.

        Raises StaleGeneration if a newer holder exists: the caller has lost the lease and must stop.
        """
        ...

    def inventory(self) -> tuple[SandboxFacts, ...]:
        """Every machine this pool can see, dead remains included."""
        ...

    def reap(self, *, at: InstantMs) -> tuple[DestroyReceipt, ...]:
        """Destroy whatever has expired or is dead but not cleaned up, whoever owns it."""
        ...


class ImageRef(Record):
    """A baked image: where it lies and the digest that goes into the manifest."""

    name: str
    digest: Digest
    path: Path
