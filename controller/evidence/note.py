"""C2SP signed notes and checkpoints: origin, size and root of the statement log under one signature.

fairtrial/round/<round id>
<number of statements>
<base64 of the root>

— <origin> <base64 of 4 bytes of key hash and 64 bytes of signature>
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from pydantic import Field

from controller.domain.keys import KeyRing, PublicKey
from controller.domain.record import Record
from controller.errors import BadSignature
from controller.evidence.envelope import check_signature, decode_base64
from controller.ports.signer import Signer

_ED25519: Final = b"\x01"
_ORIGIN: Final = re.compile(rb"(fairtrial/round/[a-z0-9-]{1,40})\n")
_CHECKPOINT: Final = re.compile(r"([^\s+]+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— ([^\s+]+) (\S+)\n")


class Checkpoint(Record):
    """The state of an append-only log at one moment."""

    origin: str = Field(pattern=r"^[^\s+]+$")
    size: int = Field(ge=0)
    root: bytes = Field(min_length=32, max_length=32)


def log_origin(round_id: str) -> str:
    """The name of a round's log, which is also the name its checkpoints are signed under."""
    return f"fairtrial/round/{round_id}"


def origin_of(note: bytes) -> str:
    """The name of the log that a note calls itself a state of. Raises BadSignature for anything but a round's log."""
    match = _ORIGIN.match(note)
    if match is None:
        raise BadSignature("not a checkpoint of a round's log")
    return match.group(1).decode()


def sign_checkpoint(checkpoint: Checkpoint, signer: Signer) -> bytes:
    """The signed note."""
    body = _body(checkpoint)
    signature = _key_hash(checkpoint.origin, signer.key) + signer.sign(body)
    return body + f"\n— {checkpoint.origin} {base64.b64encode(signature).decode()}\n".encode()


def check_checkpoint(note: bytes, origin: str, keys: KeyRing, where: str = "checkpoint") -> Checkpoint:
    """The checkpoint, if a trusted key signed it for this origin. Raises BadSignature otherwise."""
    try:
        match = _CHECKPOINT.fullmatch(note.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise BadSignature(f"{where}: not a signed checkpoint of three lines and one signature")
    name, size, root, signer_name, signature = match.groups()
    if name != origin or signer_name != origin:
        raise BadSignature(f"{where}: origin is {name!r}, not {origin!r}")
    found = Checkpoint(origin=name, size=int(size), root=decode_base64(root, f"{where}: root"))
    raw = decode_base64(signature, f"{where}: signature")
    key = next((key for key in keys.keys if _key_hash(origin, key) == raw[:4]), None)
    if key is None:
        raise BadSignature(f"{where}: signed by none of the trusted keys")
    check_signature(key, raw[4:], _body(found), where)
    return found


def _body(checkpoint: Checkpoint) -> bytes:
    return f"{checkpoint.origin}\n{checkpoint.size}\n{base64.b64encode(checkpoint.root).decode()}\n".encode()


def _key_hash(name: str, key: PublicKey) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + bytes.fromhex(key.public_hex)).digest()[:4]
