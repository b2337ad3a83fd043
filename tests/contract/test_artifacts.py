"""One suite for every artifact store."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.adapters.artifacts_fs import FsArtifacts
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import DiskFull, InvalidInput
from controller.ports.ledger import Artifacts, UploadGrant
from tests.world.artifacts import MemoryArtifacts
from tests.world.clock import SetClock

ATTEMPT = AttemptId("att-1")
GRANT = UploadGrant(
    attempt_id=ATTEMPT, token_sha256="a" * 64, name="tree.jsonl", bytes_max=10, expires_at=InstantMs(9_000)
)
AT = InstantMs(2_000)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["memory", "files"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> Iterator[Artifacts]:
    if request.param == "memory":
        yield MemoryArtifacts(clock)
    else:
        real = FsArtifacts(tmp_path / "files", tmp_path / "grants.sqlite", clock)
        yield real
        real.close()


def test_a_grant_is_found_by_its_exact_name_and_token_until_it_ends(artifacts: Artifacts, clock: SetClock) -> None:
    artifacts.grant((GRANT,))
    artifacts.grant((GRANT,))
    assert artifacts.find_grant(ATTEMPT, "tree.jsonl", "a" * 64) == GRANT
    assert artifacts.find_grant(ATTEMPT, "tree.json", "a" * 64) is None
    assert artifacts.find_grant(AttemptId("att-2"), "tree.jsonl", "a" * 64) is None
    assert artifacts.find_grant(ATTEMPT, "tree.jsonl", "b" * 64) is None
    clock.at = InstantMs(9_000)
    assert artifacts.find_grant(ATTEMPT, "tree.jsonl", "a" * 64) is None


def test_a_grant_does_not_change(artifacts: Artifacts) -> None:
    artifacts.grant((GRANT,))
    with pytest.raises(InvalidInput):
        artifacts.grant((GRANT.model_copy(update={"bytes_max": 11}),))


def test_revoking_ends_every_grant_of_the_attempt(artifacts: Artifacts) -> None:
    artifacts.grant((GRANT,))
    artifacts.revoke(ATTEMPT)
    artifacts.revoke(ATTEMPT)
    assert artifacts.find_grant(ATTEMPT, "tree.jsonl", "a" * 64) is None


def test_grants_revoked_unused_may_be_given_anew(artifacts: Artifacts) -> None:
    artifacts.grant((GRANT,))
    artifacts.revoke(ATTEMPT)
    anew = GRANT.model_copy(update={"token_sha256": "b" * 64})
    artifacts.grant((anew,))
    assert artifacts.find_grant(ATTEMPT, "tree.jsonl", "b" * 64) == anew
    artifacts.store(anew, b"abc", at=AT)
    artifacts.revoke(ATTEMPT)
    with pytest.raises(InvalidInput):
        artifacts.grant((GRANT,))


def test_an_artifact_is_written_once(artifacts: Artifacts) -> None:
    artifacts.grant((GRANT,))
    stored = artifacts.store(GRANT, b"0123456789", at=AT)
    assert (stored.digest, stored.bytes, stored.received_at) == (sha256_digest(b"0123456789"), 10, AT)
    assert artifacts.store(GRANT, b"0123456789", at=InstantMs(3_000)) == stored
    with pytest.raises(InvalidInput):
        artifacts.store(GRANT, b"other", at=AT)
    assert artifacts.list(ATTEMPT) == (stored,)
    assert artifacts.read(ATTEMPT, "tree.jsonl", bytes_max=10) == b"0123456789"


def test_sizes_are_bounded_both_ways(artifacts: Artifacts) -> None:
    artifacts.grant((GRANT,))
    with pytest.raises(InvalidInput):
        artifacts.store(GRANT, b"x" * 11, at=AT)
    artifacts.store(GRANT, b"", at=AT)
    assert artifacts.read(ATTEMPT, "tree.jsonl", bytes_max=0) == b""
    with pytest.raises(InvalidInput):
        artifacts.read(ATTEMPT, "exit.json", bytes_max=10)


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "A", "a b", "a\0b", "x" * 101])
def test_only_plain_names_are_granted(artifacts: Artifacts, name: str) -> None:
    with pytest.raises(InvalidInput):
        artifacts.grant((GRANT.model_copy(update={"name": name}),))


def test_files_are_private_and_leave_no_halves(tmp_path: Path, clock: SetClock) -> None:
    store = FsArtifacts(tmp_path / "files", tmp_path / "grants.sqlite", clock)
    store.grant((GRANT,))
    store.store(GRANT, b"abc", at=AT)
    assert [path.name for path in (tmp_path / "files" / "att-1").iterdir()] == ["tree.jsonl"]
    path = tmp_path / "files" / "att-1" / "tree.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"abd")
    with pytest.raises(InvalidInput, match="digest"):
        store.read(ATTEMPT, "tree.jsonl", bytes_max=10)
    store.close()


def test_a_full_disk_leaves_nothing(tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FsArtifacts(tmp_path / "files", tmp_path / "grants.sqlite", clock)
    store.grant((GRANT,))

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("controller.adapters.artifacts_fs.os.fsync", no_space)
        with pytest.raises(DiskFull):
            store.store(GRANT, b"abc", at=AT)
    assert not any(path.is_file() for path in (tmp_path / "files").rglob("*"))
    assert store.list(ATTEMPT) == ()
    assert store.store(GRANT, b"abc", at=AT).bytes == 3
    store.close()


def test_a_crash_between_the_file_and_its_record_is_mended_by_the_same_upload(tmp_path: Path, clock: SetClock) -> None:
    store = FsArtifacts(tmp_path / "files", tmp_path / "grants.sqlite", clock)
    store.grant((GRANT,))
    (tmp_path / "files" / "att-1").mkdir()
    (tmp_path / "files" / "att-1" / "tree.jsonl").write_bytes(b"abc")
    with pytest.raises(InvalidInput):
        store.store(GRANT, b"abd", at=AT)
    assert store.store(GRANT, b"abc", at=AT).digest == sha256_digest(b"abc")
    store.close()
