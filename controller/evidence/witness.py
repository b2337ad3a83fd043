"""Cosignatures of witnesses (C2SP tlog-cosignature, Ed25519): a second party's word that a log only grew.

A cosigned checkpoint is the publisher's signed note with one more line:

— <witness> <base64 of 4 bytes of key hash, 8 bytes of seconds since the epoch, 64 bytes of signature>
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.domain.instant import InstantMs
from controller.domain.keys import PublicKey
from controller.errors import BadSignature, BundleRejected, InvalidInput, LogRewritten
from controller.evidence import merkle
from controller.evidence.envelope import check_signature, decode_base64
from controller.evidence.log import check_continues
from controller.evidence.note import Checkpoint
from controller.ports.signer import Signer

_COSIGNATURE: Final = b"\x04"  # the algorithm byte of Ed25519 cosignatures
_BLOB_BYTES: Final = 4 + 8 + 64
_SECONDS_MAX: Final = 2**43  # far beyond what a date can be; the standard allows 2^63 - 1
_NAME: Final = re.compile(r"[^\s+]{1,200}")
_VKEY: Final = re.compile(r"([^\s+]{1,200})\+([0-9a-f]{8})\+(\S{44})")
_LINE: Final = re.compile(r"— ([^\s+]{1,200}) (\S{104})\n")
_FORM: Final = "A witness is one line, `<name>+<8 hex digits>+<base64>`, as `fairtrial witness key` prints it."


@dataclass(frozen=True)
class Witness:
    """Somebody who vouches for the growth of logs, by the name and key that a reader was told."""

    name: str
    key: PublicKey

    @property
    def key_hash(self) -> bytes:
        """The four bytes that stand before his signatures."""
        material = _COSIGNATURE + bytes.fromhex(self.key.public_hex)
        return hashlib.sha256(self.name.encode() + b"\n" + material).digest()[:4]

    @property
    def vkey(self) -> str:
        """The C2SP verifier key: what to give to those who are to believe him."""
        material = base64.b64encode(_COSIGNATURE + bytes.fromhex(self.key.public_hex)).decode()
        return f"{self.name}+{self.key_hash.hex()}+{material}"


def witness_of(name: str, key: PublicKey) -> Witness:
    """Raises InvalidInput for a name that no signature line could carry."""
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(f"name: {name[:80]!r} is empty, too long, or holds a space or a `+`", remedy=_FORM)
    return Witness(name, key)


def parse_witnesses(text: str, where: str) -> tuple[Witness, ...]:
    """One verifier key per line; empty lines are skipped. Raises InvalidInput naming the line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _VKEY.fullmatch(line.strip())
        try:
            material = decode_base64(match.group(3), "") if match else b""
        except BadSignature:
            material = b""
        if match is None or len(material) != 33 or material[:1] != _COSIGNATURE:
            raise InvalidInput(f"{where}:{number}: not the verifier key of a witness", remedy=_FORM)
        witness = Witness(match.group(1), PublicKey.of(material[1:]))
        if witness.vkey != line.strip():
            raise InvalidInput(f"{where}:{number}: the key is not the one that was named by its hash", remedy=_FORM)
        found.append(witness)
    if not found:
        raise InvalidInput(f"{where}: no verifier key", remedy=_FORM)
    return tuple(found)


def check_growth(
    last: Checkpoint, new: Checkpoint, *, log: Sequence[bytes] | None, proof: Sequence[bytes] | None
) -> None:
    """Raises LogRewritten unless the state that was signed last is a part of the new one.

    `log` are the canonical bytes of the statements, `proof` is a consistency proof; one of them is needed when the log
    has grown, else InvalidInput is raised, as it is for a state older than the last.
    """
    if new.size < last.size:
        raise InvalidInput(
            f"the checkpoint is of {new.size} statements, and {last.size} were signed before",
            remedy="Ask for the newest checkpoint; an older one may not be signed after it.",
        )
    if log is not None:
        check_continues(log, (last, new))
    elif new.size == last.size:
        if new.root != last.root:
            raise LogRewritten(f"two states of {new.size} statements with different roots were signed")
    elif proof is None:
        raise InvalidInput(
            f"nothing shows that the {last.size} statements signed before are among these {new.size}",
            remedy="Give the log itself with --log, or a consistency proof with --proof.",
        )
    else:
        try:
            merkle.check_consistency(last.size, new.size, last.root, new.root, proof)
        except BundleRejected as error:
            raise LogRewritten(f"the log is not shown to have only grown: {error}") from error


def cosign(note: bytes, witness: Witness, signer: Signer, *, at: InstantMs) -> bytes:
    """The publisher's signed note with the witness's line. The note must have been checked."""
    seconds = at // 1000
    signature = signer.sign(_message(note, seconds))
    blob = witness.key_hash + seconds.to_bytes(8, "big") + signature
    return note + f"— {witness.name} {base64.b64encode(blob).decode()}\n".encode()


def publishers_note(cosigned: bytes) -> bytes:
    """A cosigned note without its last line: what the publisher signed, and the witness with him."""
    return cosigned[: max(cosigned.rfind("— ".encode()), 0)]


def check_cosigned(cosigned: bytes, witness: Witness, where: str) -> InstantMs | None:
    """When that witness signed; None when the last line is another's. The publisher's own line is checked elsewhere.

    At that time this was the largest state of the log that he had seen, and it had only grown. Raises BadSignature for
    a last line that no witness writes, and for one of his that does not fit.
    """
    note = publishers_note(cosigned)
    try:
        match = _LINE.fullmatch(cosigned[len(note) :].decode())
    except UnicodeDecodeError:
        match = None
    blob = decode_base64(match.group(2), f"{where}: cosignature") if match else b""
    seconds = int.from_bytes(blob[4:12], "big")
    if match is None or len(blob) != _BLOB_BYTES or seconds > _SECONDS_MAX:
        raise BadSignature(f"{where}: not a signed checkpoint with the line of a witness")
    if (match.group(1), blob[:4]) != (witness.name, witness.key_hash):
        return None
    check_signature(witness.key, blob[12:], _message(note, seconds), where)
    return InstantMs(seconds * 1000)


def _message(note: bytes, seconds: int) -> bytes:
    """What is signed: a header, the time, and the note without its signatures."""
    body = note[: note.find(b"\n\n") + 1]
    return b"cosignature/v1\ntime %d\n%b" % (seconds, body)
