"""The result API as a real process: an acknowledgement means durable, and nothing else gets in or out."""

from __future__ import annotations

import hashlib
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.adapters.artifacts_fs import FsArtifacts
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.instant import InstantMs
from controller.ports.ledger import UploadGrant
from tests.world.processes import Answer, ServiceProcess, call, raw_call, short_directory

FAR = InstantMs(4_102_444_800_000)


class ResultsRig:
    """A real result API with the controller's side of its grants."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "results.sock"
        self.files = directory / "files"
        self.config = directory / "results.json"
        paths = {"artifacts": str(self.files), "grants": str(directory / "grants.sqlite"), "socket": str(self.socket)}
        self.config.write_text(json.dumps(paths))
        self.artifacts = FsArtifacts(self.files, directory / "grants.sqlite", SystemClock())
        self.service = self.start()

    def start(self) -> ServiceProcess:
        self.service = ServiceProcess("api", self.config)
        self.service.wait_ready()
        return self.service

    def grant(self, attempt: str = "att-1", name: str = "tree.jsonl", *, bytes_max: int = 100) -> None:
        token = hashlib.sha256(f"up-{attempt}".encode()).hexdigest()
        self.artifacts.grant(
            (
                UploadGrant(
                    attempt_id=AttemptId(attempt), token_sha256=token, name=name, bytes_max=bytes_max, expires_at=FAR
                ),
            )
        )

    def put(self, data: bytes, attempt: str = "att-1", name: str = "tree.jsonl", *, token: str = "up-att-1") -> Answer:
        headers = {"Authorization": f"Bearer {token}"}
        return call(self.socket, "PUT", f"/results/{attempt}/{name}", body=data, headers=headers)


@pytest.fixture(scope="module")
def rig() -> Iterator[ResultsRig]:
    with short_directory() as directory:
        running = ResultsRig(directory)
        yield running
        assert running.service.stop() == 0
        running.artifacts.close()


def test_an_upload_is_acknowledged_once_it_is_durable(rig: ResultsRig) -> None:
    rig.grant()
    first, again = rig.put(b"abc"), rig.put(b"abc")
    assert first.status == again.status == 200
    assert first.json() == again.json() == {"digest": sha256_digest(b"abc"), "bytes": 3}
    assert rig.put(b"abd").status == 403
    assert rig.artifacts.read(AttemptId("att-1"), "tree.jsonl", bytes_max=100) == b"abc"


def test_a_token_covers_its_own_names_only(rig: ResultsRig) -> None:
    rig.grant("att-2")
    rig.grant("att-3")
    assert rig.put(b"x", "att-2", token="up-att-3").status == 403
    assert rig.put(b"x", "att-2", "exit.json", token="up-att-2").status == 403
    assert call(rig.socket, "PUT", "/results/att-2/tree.jsonl", body=b"x").status == 401
    rig.artifacts.revoke(AttemptId("att-3"))
    assert rig.put(b"x", "att-3", token="up-att-3").status == 403
    assert rig.artifacts.list(AttemptId("att-2")) == rig.artifacts.list(AttemptId("att-3")) == ()


def test_a_body_larger_than_the_grant_is_refused_with_and_without_a_length(rig: ResultsRig) -> None:
    rig.grant("att-4", bytes_max=4)
    assert rig.put(b"12345", "att-4", token="up-att-4").status == 403
    chunked = (
        b"PUT /results/att-4/tree.jsonl HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer up-att-4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"
    )
    assert raw_call(rig.socket, chunked).startswith(b"HTTP/1.1 403")
    assert rig.put(b"1234", "att-4", token="up-att-4").status == 200


def test_a_body_that_breaks_off_is_not_stored(rig: ResultsRig) -> None:
    rig.grant("att-5")
    head = b"PUT /results/att-5/tree.jsonl HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer up-att-5\r\n"
    answer = raw_call(rig.socket, head + b"Content-Length: 50\r\n\r\nonly this", half_close=True)
    assert b" 200 " not in answer
    assert rig.artifacts.list(AttemptId("att-5")) == ()


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/results/att-1/tree.jsonl"),
        ("HEAD", "/results/att-1/tree.jsonl"),
        ("DELETE", "/results/att-1/tree.jsonl"),
        ("POST", "/results/att-1/tree.jsonl"),
        ("GET", "/results/att-1"),
        ("GET", "/results/"),
        ("PUT", "/results/att-1/tree.jsonl?x=1"),
        ("PUT", "/results/att-1/../att-1/tree.jsonl"),
        ("PUT", "/results/att-1/%74ree.jsonl"),
        ("PUT", "/results//tree.jsonl"),
    ],
)
def test_nothing_else_is_served(rig: ResultsRig, method: str, target: str) -> None:
    rig.grant()
    answer = call(rig.socket, method, target, headers={"Authorization": "Bearer up-att-1"})
    assert answer.status == 403
    assert b"abc" not in answer.body


def test_a_full_disk_is_no_acknowledgement_and_leaves_nothing() -> None:
    with short_directory() as directory:
        rig = ResultsRig(directory)
        rig.grant(bytes_max=2**20)
        # The kernel refuses the service any byte past this offset, so the file can't be written whole.
        resource.prlimit(rig.service.process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        assert rig.put(b"x" * 400_000).status == 500
        assert not any(path.is_file() for path in rig.files.rglob("*"))
        resource.prlimit(rig.service.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert rig.put(b"x" * 400_000).status == 200
        assert rig.service.stop() == 0
        rig.artifacts.close()


def test_what_was_acknowledged_survives_a_kill() -> None:
    with short_directory() as directory:
        rig = ResultsRig(directory)
        rig.grant()
        assert rig.put(b"abc").status == 200
        rig.service.kill()
        rig.start()
        assert rig.put(b"abc").status == 200
        assert rig.artifacts.read(AttemptId("att-1"), "tree.jsonl", bytes_max=100) == b"abc"
        assert rig.service.stop() == 0
        rig.artifacts.close()
