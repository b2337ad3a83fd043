"""The witness's side: a key, a memory of what it signed, and nothing of ours but files. And the publisher's: proofs."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.adapters.files_durable import LocalFiles
from controller.adapters.round_lock import round_lock
from controller.adapters.signer_file import FileSigner, read_keys
from controller.adapters.system_clock import SystemClock
from controller.conductor.checkpoints import CHECKPOINT_BYTES_MAX, checkpoint_paths
from controller.domain.keys import KeyRing
from controller.domain.statement import Statement
from controller.errors import BadSignature, InvalidInput
from controller.evidence.bundle import cosigned_name
from controller.evidence.canonical import parse_lines
from controller.evidence.envelope import decode_base64
from controller.evidence.log import check_continues, leaves
from controller.evidence.merkle import consistency_proof
from controller.evidence.note import Checkpoint, check_checkpoint, origin_of
from controller.evidence.witness import Witness, check_cosigned, check_growth, cosign, publishers_note, witness_of
from controller.settings import Settings
from controller.wiring.inputs import read_input, read_witnesses
from controller.wiring.rounds import read_round
from controller.wiring.tools import publisher

PROOF_BYTES_MAX: Final = 2**16  # 45 bytes for each doubling of the log


def verifier_key(private: Path, name: str) -> str:
    """The line that stands for the witness. Makes the key at first use."""
    return witness_of(name, FileSigner.open(private).key).vkey


def write_proof(round_dir: Path, since: int, out: Path) -> Path:
    """Write the consistency proof from that size to the newest signed state; that state's file."""
    found = read_round(round_dir)
    try:
        paths = checkpoint_paths(found.directory)
        size = max(paths, default=0)
        if since > size:
            raise InvalidInput(f"{since} statements were never signed; the newest signed state is of {size}")
        spelled = leaves(found.journal.statements())[:size]
    finally:
        found.journal.close()
    lines = (base64.b64encode(node).decode() + "\n" for node in consistency_proof(spelled, since))
    LocalFiles().create_file(out, "".join(lines).encode())
    return paths[size]


def sign_checkpoint(
    checkpoint: Path,
    private: Path,
    name: str,
    publisher_keys: Path,
    out: Path,
    *,
    log: Path | None,
    proof: Path | None,
    previous: Path | None,
) -> tuple[int, int]:
    """Cosign a checkpoint; how many statements it signs, and how many the last one did (0 for the first).

    What was signed is remembered beside the key, by publisher and round. Raises LogRewritten when the checkpoint does
    not continue it, InvalidInput when nothing shows whether it does, BadSignature when the publisher did not sign it.
    """
    signer = FileSigner.open(private)
    witness, publishers = witness_of(name, signer.key), read_keys(publisher_keys)
    note = read_input(checkpoint, bytes_max=CHECKPOINT_BYTES_MAX)
    origin = origin_of(note)
    new = check_checkpoint(note, origin, publishers, str(checkpoint))
    spelled = _log(log) if log else None
    nodes = _proof(proof) if proof else None
    memory = private.with_name(f"{private.name}.witnessed")
    memory.mkdir(parents=True, exist_ok=True)
    with round_lock(memory):
        signed = [*_remembered(memory, origin, publishers)]
        if previous is not None:
            signed.append(_previous(previous, origin, publishers, witness))
        size = max((each.size for each in signed), default=0)
        for last in (each for each in signed if each.size == size):
            check_growth(last, new, log=spelled, proof=nodes)
        if spelled is not None:
            check_continues(spelled, [new])
        # Remembered before the signature exists: a witness who forgets could vouch for two histories.
        LocalFiles().create_file(_places(memory, origin, publishers)[0] / f"{new.size}.txt", note)
        LocalFiles().create_file(out, cosign(note, witness, signer, at=SystemClock().now()))
    return new.size, size


def attach_cosigned(settings: Settings, round_dir: Path, cosigned: Path, witness_file: Path) -> Path:
    """Keep a cosigned checkpoint with the round; its file. Raises BadSignature for what is not one of this round."""
    data = read_input(cosigned, bytes_max=CHECKPOINT_BYTES_MAX)
    note, ring = publishers_note(data), KeyRing(keys=(publisher(settings).key,))
    found = read_round(round_dir)
    found.journal.close()
    size = check_checkpoint(note, origin_of(note), ring, str(cosigned)).size
    kept = checkpoint_paths(found.directory).get(size)
    if kept is None or read_input(kept, bytes_max=CHECKPOINT_BYTES_MAX) != note:
        raise BadSignature(f"{cosigned}: not one of the signed states of round {found.manifest.round_id}")
    for witness in read_witnesses(witness_file):
        if check_cosigned(data, witness, str(cosigned)) is not None:
            path = found.directory / cosigned_name(size, witness.key_hash.hex())
            LocalFiles().create_file(path, data)
            return path
    raise BadSignature(f"{cosigned}: signed by none of the witnesses in {witness_file}")


def _places(memory: Path, origin: str, publishers: KeyRing) -> list[Path]:
    """Where states of the log are remembered: by the publisher's keys, since two publishers may name a round alike."""
    round_id = origin.rpartition("/")[2]
    return [memory / key.id.removeprefix("ed25519:")[:16] / round_id for key in publishers.keys]


def _remembered(memory: Path, origin: str, publishers: KeyRing) -> Iterator[Checkpoint]:
    for place in _places(memory, origin, publishers):
        for path in sorted(place.glob("*.txt")):
            yield check_checkpoint(read_input(path, bytes_max=CHECKPOINT_BYTES_MAX), origin, publishers, str(path))


def _previous(path: Path, origin: str, publishers: KeyRing, witness: Witness) -> Checkpoint:
    """A state of this log that this very key has cosigned. Raises BadSignature for any other."""
    cosigned = read_input(path, bytes_max=CHECKPOINT_BYTES_MAX)
    if check_cosigned(cosigned, witness, str(path)) is None:
        raise BadSignature(f"{path}: not cosigned by {witness.name} with this key")
    return check_checkpoint(publishers_note(cosigned), origin, publishers, str(path))


def _log(path: Path) -> tuple[bytes, ...]:
    """The canonical bytes of every statement in a file. Raises NotCanonical."""
    return leaves(parse_lines(read_input(path), Statement, str(path)))


def _proof(path: Path) -> tuple[bytes, ...]:
    """The nodes of a consistency proof, one per line. Raises InvalidInput."""
    try:
        lines = read_input(path, bytes_max=PROOF_BYTES_MAX).decode("ascii").splitlines()
        nodes = tuple(decode_base64(line, str(path)) for line in lines)
    except (UnicodeDecodeError, BadSignature) as error:
        raise InvalidInput(f"{path}: not one base64 hash per line") from error
    if any(len(node) != 32 for node in nodes):
        raise InvalidInput(f"{path}: not one base64 hash per line")
    return nodes
