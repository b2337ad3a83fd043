from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from controller.adapters.person_key import new_person_key, open_person_key, read_passphrase
from controller.adapters.signer_file import FileSigner
from controller.errors import InvalidInput

PHRASE = b"correct horse battery"


def descriptor(data: bytes) -> int:
    source, sink = os.pipe()
    os.write(sink, data)
    os.close(sink)
    return source


def test_a_key_is_made_once_for_its_owner_alone_and_opens_with_its_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "anna.pem"
    made = new_person_key(path, PHRASE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"ENCRYPTED" in path.read_bytes()
    opened = open_person_key(path, PHRASE)
    assert opened.key == made.key
    assert opened.sign(b"x") == made.sign(b"x")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="never overwritten"):
        new_person_key(path, PHRASE)
    assert path.read_bytes() == before


@pytest.mark.parametrize("phrase", [b"another passphrase", b"correct horse batterz"])
def test_a_wrong_passphrase_opens_nothing(tmp_path: Path, phrase: bytes) -> None:
    new_person_key(tmp_path / "anna.pem", PHRASE)
    with pytest.raises(InvalidInput, match="not its passphrase"):
        open_person_key(tmp_path / "anna.pem", phrase)


def test_a_key_without_a_passphrase_is_no_persons(tmp_path: Path) -> None:
    FileSigner.open(tmp_path / "publisher.pem")
    with pytest.raises(InvalidInput, match="no passphrase protects"):
        open_person_key(tmp_path / "publisher.pem", PHRASE)


def test_files_that_hold_no_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"nonsense")
    for path in (tmp_path / "x", tmp_path / "absent", tmp_path):
        with pytest.raises(InvalidInput):
            open_person_key(path, PHRASE)
    with pytest.raises(InvalidInput):
        new_person_key(tmp_path / "absent" / "x", PHRASE)


@pytest.mark.parametrize("data", [PHRASE, PHRASE + b"\n", PHRASE + b"\r\n", PHRASE + b"\nmore\n"])
def test_a_passphrase_is_one_line_of_a_descriptor(data: bytes) -> None:
    assert read_passphrase(descriptor(data)) == PHRASE


@pytest.mark.parametrize("data", [b"", b"\n", b"too short", b"x" * 1025])
def test_a_passphrase_of_no_sensible_length_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="passphrase has"):
        read_passphrase(descriptor(data))


def test_without_a_terminal_or_a_descriptor_there_is_no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("typed by nobody\n"))
    with pytest.raises(InvalidInput, match="no terminal"):
        read_passphrase(None)
    with pytest.raises(InvalidInput, match="descriptor 999"):
        read_passphrase(999)


@pytest.mark.parametrize(("second", "fits"), [("typed by a person", True), ("typed by a persom", False)])
def test_a_new_passphrase_is_typed_twice(monkeypatch: pytest.MonkeyPatch, second: str, fits: bool) -> None:
    typed = iter(["typed by a person", second])
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": staticmethod(lambda: True)})())
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))
    if fits:
        assert read_passphrase(None, twice=True) == b"typed by a person"
    else:
        with pytest.raises(InvalidInput, match="differ"):
            read_passphrase(None, twice=True)
