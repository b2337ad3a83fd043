"""A verifier machine for tests: the host itself, in a scratch directory. It offers no isolation but that of users.

Running it needs root, because the judge gives the subject a user of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from controller.domain.instant import InstantMs
from controller.errors import SandboxLost
from controller.ports.containers import Containers
from controller.ports.pool import ExecResult, SandboxFacts, SandboxRole
from controller.verify.step import JudgeSite


class LocalSandbox:
    """The `Sandbox` port on the host."""

    @property
    def facts(self) -> SandboxFacts:
        return SandboxFacts(
            name="local",
            role=SandboxRole.VERIFIER,
            generation=1,
            owner="tests",
            created_at=InstantMs(0),
            expires_at=InstantMs(1),
            alive=True,
        )

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        try:
            done = subprocess.run(list(argv), input=stdin, capture_output=True, timeout=timeout_seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise SandboxLost(f"{argv[0]} did not end in time") from error
        return ExecResult(
            exit_code=done.returncode,
            stdout=done.stdout[:output_bytes_max],
            stderr=done.stderr[:output_bytes_max],
            truncated=max(len(done.stdout), len(done.stderr)) > output_bytes_max,
        )

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > bytes_max:
            raise SandboxLost(f"{path} is absent or too large")
        return file.read_bytes()

    def containers(self) -> AbstractContextManager[Containers]:
        raise SandboxLost("a verifier machine has no containers")

    def console(self) -> str:
        return ""


@contextmanager
def judge_site() -> Iterator[JudgeSite]:
    """A directory of the host that other users can enter, and a user that no other test run has."""
    top = Path(tempfile.mkdtemp(prefix="fairtrial-judge-"))
    top.chmod(0o755)
    user = 1_000_000 + os.getpid()
    try:
        yield JudgeSite(directory=str(top / "site"), uid=user, gid=user, memory_bytes=None)
    finally:
        shutil.rmtree(top)
