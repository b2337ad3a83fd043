from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.adapters.opener_file import FileOpener, read_recipient
from controller.adapters.signer_file import FileSigner
from controller.errors import InvalidInput, SealedKeyMissing
from tests.world.sealed import RUNNER


def test_a_key_is_its_owners_alone_and_its_public_half_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "runner.pem"
    made = FileOpener.create(path, "runner")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(p.name for p in path.parent.iterdir()) == ["runner.pem", "runner.pub.json"]
    assert read_recipient(path.with_suffix(".pub.json")) == made.key
    again = FileOpener.open(path, "runner")
    assert again.key == made.key
    public = bytes.fromhex(RUNNER.key.public_hex)
    assert again.exchange(public) == RUNNER.exchange(bytes.fromhex(made.key.public_hex))
    with pytest.raises(InvalidInput, match="could not be opened any more"):
        FileOpener.create(path, "runner")
    assert FileOpener.open(path, "runner").key == made.key


def test_a_missing_key_a_loose_one_and_one_of_another_kind_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "verifier.pem"
    with pytest.raises(SealedKeyMissing, match=r"no key for the verifier part of sealed tasks: .*verifier\.pem"):
        FileOpener.open(path, "verifier")
    FileOpener.create(path, "verifier")
    path.chmod(0o604)
    with pytest.raises(InvalidInput, match="read by others"):
        FileOpener.open(path, "verifier")
    path.chmod(0o600)
    path.write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match="PEM"):
        FileOpener.open(path, "verifier")
    FileSigner.open(tmp_path / "publisher.pem")
    with pytest.raises(InvalidInput, match="not X25519"):
        FileOpener.open(tmp_path / "publisher.pem", "verifier")
    with pytest.raises(InvalidInput, match=r"directory\.pem: "):
        FileOpener.open(_directory(tmp_path), "verifier")


def _directory(parent: Path) -> Path:
    path = parent / "directory.pem"
    path.mkdir(mode=0o700)
    return path


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"part": "publisher"}, "part"),
        ({"id": "x25519:" + "0" * 64}, "id is not"),
        ({"public_hex": "00"}, "public_hex"),
        ({"colour": "red"}, "colour"),
        ({"schema_version": "fairtrial.recipient/2"}, "schema_version"),
    ],
)
def test_a_public_key_is_read_strictly(changes: dict[str, str], field: str, tmp_path: Path) -> None:
    path = tmp_path / "key.pub.json"
    path.write_text(json.dumps({**RUNNER.key.model_dump(), **changes}))
    with pytest.raises(InvalidInput, match=rf"key\.pub\.json: .*{field}"):
        read_recipient(path)
    with pytest.raises(InvalidInput, match=r"none\.json"):
        read_recipient(tmp_path / "none.json")
