from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from controller.adapters.signer_file import FileSigner, read_keys
from controller.domain.keys import KeyRing
from controller.errors import InvalidInput
from controller.evidence.envelope import check, sign


def test_a_key_is_made_once_for_its_owner_alone_and_signs_alike_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "publisher.pem"
    first, again = FileSigner.open(path), FileSigner.open(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert first.key == again.key
    assert first.sign(b"x") == again.sign(b"x")
    envelope = sign("t", b"payload", first)
    assert check(envelope, "t", KeyRing(keys=(again.key,))) == b"payload"
    assert [p.name for p in path.parent.iterdir()] == ["publisher.pem"]


def test_a_key_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    FileSigner.open(path)
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="read by others"):
        FileSigner.open(path)
    path.chmod(0o600)
    path.write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match="PEM"):
        FileSigner.open(path)
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(other)
    with pytest.raises(InvalidInput, match="not Ed25519"):
        FileSigner.open(path)


def test_a_key_file_may_be_spelled_freely_but_must_hold_keys(tmp_path: Path) -> None:
    ring = KeyRing(keys=(FileSigner.open(tmp_path / "key.pem").key,))
    path = tmp_path / "keys.json"
    path.write_text(ring.model_dump_json(indent=2) + "\n")
    assert read_keys(path) == ring
    with pytest.raises(InvalidInput, match=r"none\.json"):
        read_keys(tmp_path / "none.json")
    for text, field in (("{}", "keys"), ("x", "the file"), ('{"keys":[{"id":"a","public_hex":"00"}]}', "public_hex")):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=field):
            read_keys(path)
