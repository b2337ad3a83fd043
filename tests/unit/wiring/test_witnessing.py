"""A witness at his own machine, with nothing but files: he signs growth, remembers it, and signs no second history."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.signer_file import FileSigner
from controller.domain.keys import KeyRing
from controller.errors import BadSignature, FairtrialError, InvalidInput, LogRewritten
from controller.evidence.bundle import checkpoint_name
from controller.evidence.canonical import canonical, lines
from controller.evidence.log import checkpoint_of, leaves
from controller.evidence.note import sign_checkpoint
from controller.evidence.witness import check_cosigned, parse_witnesses
from controller.settings import Settings
from controller.wiring.witnessing import attach_cosigned, verifier_key, write_proof
from controller.wiring.witnessing import sign_checkpoint as witness_sign
from tests.unit.evidence.test_log_and_note import chain
from tests.world.signer import FixedSigner
from tests.world.simulation import Simulation

NAME = "example.org/w"


class Post:
    """What the publisher sends: notes and logs of one history, and what the witness makes of them."""

    def __init__(self, directory: Path, *, label: str = "publisher", note: str = "") -> None:
        self.directory, self.signer = directory, FixedSigner(label)
        self.statements = chain(12, note=note)
        self.keys = directory / f"{label}.keys.json"
        self.keys.write_bytes(canonical(KeyRing(keys=(self.signer.key,))))
        self._count = 0

    def state(self, size: int) -> Path:
        note = sign_checkpoint(checkpoint_of("demo", leaves(self.statements[:size])), self.signer)
        return self._file("note", note)

    def log(self, size: int) -> Path:
        return self._file("log", lines(self.statements[:size]))

    def _file(self, kind: str, data: bytes) -> Path:
        self._count += 1
        path = self.directory / f"{kind}-{id(self)}-{self._count}"
        path.write_bytes(data)
        return path

    def sign(self, size: int, *, key: Path, shown: int | None = None, previous: Path | None = None) -> tuple[int, int]:
        self._count += 1
        self.out = self.directory / f"out-{id(self)}-{self._count}"
        log = self.log(shown) if shown else None
        return witness_sign(self.state(size), key, NAME, self.keys, self.out, log=log, proof=None, previous=previous)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "witness.pem"


def test_growth_is_signed_and_the_last_state_is_remembered(post: Post, key: Path) -> None:
    assert post.sign(3, key=key) == (3, 0)
    assert post.sign(7, key=key, shown=7) == (7, 3)
    assert post.sign(7, key=key) == (7, 7)
    (witness,) = parse_witnesses(verifier_key(key, NAME), "key")
    assert check_cosigned(post.out.read_bytes(), witness, "out") is not None


@pytest.mark.parametrize(
    ("size", "shown", "error"), [(7, None, InvalidInput), (2, 2, InvalidInput), (7, 6, LogRewritten)]
)
def test_what_is_not_shown_to_have_grown_is_not_signed(
    size: int, shown: int | None, error: type[FairtrialError], post: Post, key: Path
) -> None:
    post.sign(3, key=key)
    with pytest.raises(error):
        post.sign(size, key=key, shown=shown)
    assert not post.out.exists()
    assert post.sign(4, key=key, shown=4) == (4, 3), "what was refused was not remembered"


def test_a_second_history_is_not_signed_even_with_its_whole_log(post: Post, key: Path, tmp_path: Path) -> None:
    post.sign(3, key=key)
    rewritten = Post(tmp_path, note="another ")
    for size in (3, 7):
        with pytest.raises(LogRewritten):
            rewritten.sign(size, key=key, shown=size)
    assert not rewritten.out.exists()


def test_another_publishers_round_of_the_same_name_is_another_log(post: Post, key: Path, tmp_path: Path) -> None:
    post.sign(3, key=key)
    assert Post(tmp_path, label="rival", note="another ").sign(2, key=key) == (2, 0)


def test_a_witness_on_a_new_machine_gives_what_he_signed_last(post: Post, key: Path, tmp_path: Path) -> None:
    post.sign(5, key=key)
    signed = post.out
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "witness.pem"
    moved.write_bytes(key.read_bytes())
    moved.chmod(0o600)
    with pytest.raises(LogRewritten):
        Post(tmp_path, note="another ").sign(7, key=moved, shown=7, previous=signed)
    with pytest.raises(BadSignature, match="not cosigned by"):
        post.sign(7, key=tmp_path / "moved" / "other.pem", shown=7, previous=signed)
    with pytest.raises(BadSignature):
        post.sign(7, key=moved, shown=7, previous=post.state(5))
    assert post.sign(7, key=moved, shown=7, previous=signed) == (7, 5)


def test_what_the_publisher_did_not_sign_is_not_signed(post: Post, key: Path, tmp_path: Path) -> None:
    rival = Post(tmp_path, label="rival")
    rival.keys = post.keys
    with pytest.raises(BadSignature, match="none of the trusted keys"):
        rival.sign(3, key=key)
    with pytest.raises(BadSignature, match="not a checkpoint of a round's log"):
        witness_sign(post.log(3), key, NAME, post.keys, tmp_path / "new", log=None, proof=None, previous=None)


def test_a_proof_of_the_publisher_carries_a_round_to_the_witness_and_back(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state")
    publisher = FileSigner.open(settings.keys_dir / "publisher.pem")
    found = on_disk(tmp_path, publisher)
    keys, key = found.directory / "keys.json", tmp_path / "w.pem"
    first, vkey = found.directory / checkpoint_name(1), tmp_path / "w.vkey"
    vkey.write_text(verifier_key(key, NAME))
    witness_sign(first, key, NAME, keys, tmp_path / "1.cosigned", log=None, proof=None, previous=None)
    found.conduct(found.world())
    newest = found.checkpoints().sign()
    assert write_proof(found.directory, 1, tmp_path / "proof") == newest
    out = tmp_path / "2.cosigned"
    size, last = witness_sign(newest, key, NAME, keys, out, log=None, proof=tmp_path / "proof", previous=None)
    assert (size, last) == (len(found.journal.statements()), 1)
    kept = attach_cosigned(settings, found.directory, out, vkey)
    assert kept.parent == found.directory / "witness"
    assert kept.read_bytes() == out.read_bytes()
    (tmp_path / "rival.vkey").write_text(verifier_key(tmp_path / "rival.pem", NAME))
    for data, witness in (
        (out.read_bytes(), tmp_path / "rival.vkey"),
        (newest.read_bytes(), vkey),
        (b"", vkey),
        (out.read_bytes()[:-2], vkey),
    ):
        (tmp_path / "sent").write_bytes(data)
        with pytest.raises(BadSignature):
            attach_cosigned(settings, found.directory, tmp_path / "sent", witness)
    moved = tmp_path / "moved.pem"
    moved.write_bytes(key.read_bytes())
    moved.chmod(0o600)
    for text in ("", "x\n", "AAAA\n", "\xff", (tmp_path / "proof").read_text() + "A" * 43 + "=\n"):
        bad = tmp_path / "bad-proof"
        bad.write_text(text, encoding="latin-1")
        first_cosigned = tmp_path / "1.cosigned"
        with pytest.raises((InvalidInput, LogRewritten)):
            witness_sign(newest, moved, NAME, keys, tmp_path / "new", log=None, proof=bad, previous=first_cosigned)
    assert not (tmp_path / "new").exists()


def on_disk(tmp_path: Path, signer: FileSigner) -> Simulation:
    """A round whose log lies where the command line looks for it."""
    return Simulation(tmp_path, signer=signer, journal=SqlJournal.in_directory)
