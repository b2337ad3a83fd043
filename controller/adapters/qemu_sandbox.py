"""One leased machine: its facts on disk, and the Sandbox port over its SSH channel."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from controller.adapters import qemu_process
from controller.adapters.containers_docker import DockerContainers
from controller.adapters.qemu_ssh import Channel, engine_stream
from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.errors import ControllerFault, SandboxLost
from controller.ports.pool import ExecResult, SandboxFacts, SandboxRole

FACTS: Final = "facts.json"
CONNECT_SECONDS: Final = 90.0
CONSOLE_BYTES: Final = 8192
READ_REGULAR: Final = "python3 -I -S /usr/lib/fairtrial/read_regular.py"
READ_SECONDS: Final = 120.0


class MachineFacts(Record):
    """`facts.json`: the intent to run this machine, and all that is known of it besides its processes."""

    name: str
    role: SandboxRole
    generation: int
    owner: str
    created_at: InstantMs
    expires_at: InstantMs
    image: str  # directory of the image

    def public(self, directory: Path) -> SandboxFacts:
        """The line of the inventory; whether the machine lives is read from /proc now."""
        return SandboxFacts(
            name=self.name,
            role=self.role,
            generation=self.generation,
            owner=self.owner,
            created_at=self.created_at,
            expires_at=self.expires_at,
            alive=bool(qemu_process.processes(directory)),
        )


class QemuSandbox:
    """The Sandbox port over one machine's SSH channel."""

    def __init__(self, facts: MachineFacts, directory: Path, channel: Channel) -> None:
        self._facts = facts
        self._directory = directory
        self._channel = channel

    @property
    def facts(self) -> SandboxFacts:
        """Who holds the machine, and whether its process lives now."""
        return self._facts.public(self._directory)

    def connect(self) -> None:
        """Open the channel. Raises SandboxLost when the machine does not answer."""
        self._channel.connect(timeout_seconds=CONNECT_SECONDS)

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        """Run one command as root of the machine; see the port."""
        return self._channel.exec(
            shlex.join(argv), stdin=stdin, timeout_seconds=timeout_seconds, output_bytes_max=output_bytes_max
        )

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Create a file, with its parent directories, owned by root; it appears whole or not at all."""
        parent = shlex.quote(str(PurePosixPath(path).parent))
        target, temporary = shlex.quote(path), shlex.quote(f"{path}.fairtrial-new")
        command = f"mkdir -p -- {parent} && (umask 077; cat > {temporary}) && chmod {mode:o} {temporary}"
        result = self._run(f"{command} && mv -fT -- {temporary} {target}", stdin=data)
        if result.exit_code != 0:
            raise SandboxLost(f"{self._facts.name}: {path}: {result.stderr.decode(errors='replace').strip()[:200]}")

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        """Read a regular file with one link and no symbolic link on its path; see the port."""
        command = f"{READ_REGULAR} {shlex.quote(path)} {bytes_max}"
        result = self._channel.exec(command, stdin=b"", timeout_seconds=READ_SECONDS, output_bytes_max=bytes_max)
        if result.exit_code != 0 or result.truncated:
            reason = result.stderr.decode(errors="replace").strip()[:200] or f"larger than {bytes_max} bytes"
            raise SandboxLost(f"{self._facts.name}: {path}: {reason}")
        return result.stdout

    @contextlib.contextmanager
    def containers(self) -> Iterator[DockerContainers]:
        """The rootless container engine inside the machine (runner role only)."""
        if self._facts.role is not SandboxRole.RUNNER:
            raise ControllerFault(f"{self._facts.name}: a {self._facts.role} has no container engine")
        containers = DockerContainers(lambda: engine_stream(self._channel))
        try:
            yield containers
        finally:
            containers.close()

    def console(self) -> str:
        """The last lines of the machine's console, for a person."""
        try:
            with (self._directory / qemu_process.CONSOLE_LOG).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - CONSOLE_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def _run(self, command: str, *, stdin: bytes) -> ExecResult:
        return self._channel.exec(command, stdin=stdin, timeout_seconds=READ_SECONDS, output_bytes_max=4096)


def read_facts(directory: Path) -> MachineFacts | None:
    """The facts of a machine's directory, or None when there are none to trust."""
    try:
        return MachineFacts.model_validate_json((directory / FACTS).read_bytes())
    except (OSError, ValueError):
        return None
