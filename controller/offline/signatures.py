"""Keys, DSSE envelopes and C2SP signed notes: who signed which bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Literal, Tuple

from . import ed25519
from .canonical import loads
from .refusal import Refused
from .shapes import read

INDEX_TYPE = "application/vnd.fairtrial.index+json"
MANIFEST_TYPE = "application/vnd.fairtrial.manifest+json"
AUTHORIZATION_TYPE = "application/vnd.fairtrial.authorization+json"
APPROVAL_TYPE = "application/vnd.fairtrial.approval+json"
_NOTE = re.compile(r"([^\s+]+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— ([^\s+]+) (\S+)\n")


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 key; its id is derived from it."""

    id: str
    public_hex: Annotated[str, re.compile(r"[0-9a-f]{64}")]
    algorithm: Literal["ed25519"] = "ed25519"

    @property
    def raw(self) -> bytes:
        """The 32 bytes."""
        return bytes.fromhex(self.public_hex)


@dataclass(frozen=True)
class KeyRing:
    """The content of keys.json: the keys whose signatures count."""

    keys: Tuple[PublicKey, ...]
    schema_version: Literal["fairtrial.keys/1"] = "fairtrial.keys/1"


@dataclass(frozen=True)
class _Signature:
    keyid: str
    sig: str


@dataclass(frozen=True)
class _Envelope:
    payload: str
    payloadType: str
    signatures: Tuple[_Signature, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Size and root of a log."""

    size: int
    root: bytes


def read_keys(data: bytes, where: str) -> KeyRing:
    """The keys of a keys.json, each under its own id."""
    ring = read(KeyRing, loads(data, where), where)
    if not ring.keys:
        raise Refused(f"{where}: holds no key")
    check_ids(ring.keys, where)
    return ring


def check_ids(keys: Tuple[PublicKey, ...], where: str) -> None:
    """Raises Refused for a key under an id that is not its own."""
    for key in keys:
        if key.id != f"ed25519:{hashlib.sha256(key.raw).hexdigest()}":
            raise Refused(f"{where}: the id {key.id[:80]!r} is not the SHA-256 of its key")


def payload_of(envelope: bytes, payload_type: str, ring: KeyRing, where: str) -> bytes:
    """What an envelope holds, if a trusted key signed it as this type."""
    found = read(_Envelope, loads(envelope, where), where)
    if found.payloadType != payload_type:
        raise Refused(f"{where}: payload type is {found.payloadType[:80]!r}, not {payload_type!r}")
    if len(found.signatures) != 1:
        raise Refused(f"{where}: {len(found.signatures)} signatures, where exactly one belongs")
    payload = _base64(found.payload, where)
    kind = payload_type.encode()
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    for key in ring.keys:
        if key.id == found.signatures[0].keyid:
            _check(key, _base64(found.signatures[0].sig, where), message, where)
            return payload
    raise Refused(f"{where}: signed by {found.signatures[0].keyid[:80]}, which is not a trusted key")


def checkpoint_of(note: bytes, origin: str, ring: KeyRing, where: str) -> Checkpoint:
    """Size and root that a trusted key signed under this origin."""
    try:
        match = _NOTE.fullmatch(note.decode("utf-8"))
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise Refused(f"{where}: not a signed checkpoint of three lines and one signature")
    name, size, root, signer, signature = match.groups()
    if (name, signer) != (origin, origin):
        raise Refused(f"{where}: origin is {name[:80]!r}, not {origin!r}")
    raw = _base64(signature, where)
    for key in ring.keys:
        if hashlib.sha256(origin.encode() + b"\n\x01" + key.raw).digest()[:4] == raw[:4]:
            _check(key, raw[4:], f"{name}\n{size}\n{root}\n".encode(), where)
            return Checkpoint(int(size), _base64(root, where))
    raise Refused(f"{where}: signed by none of the trusted keys")


def _check(key: PublicKey, signature: bytes, message: bytes, where: str) -> None:
    if not ed25519.verify(key.raw, signature, message):
        raise Refused(f"{where}: the signature does not match the bytes, or its key is weak")


def _base64(text: str, where: str) -> bytes:
    """Standard base64 in its one spelling: the bits under the padding are zero."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(f"{where}: not base64") from error
    if base64.b64encode(data).decode() != text:
        raise Refused(f"{where}: not canonical base64")
    return data
