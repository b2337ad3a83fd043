"""DSSE envelopes: payload type, payload and one Ed25519 signature, in exactly one spelling.

An envelope's own bytes are never an identity: whoever holds the key can sign the same payload again. Identify by the
digest of the payload.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field

from controller.domain.keys import KeyRing, PublicKey
from controller.domain.record import Record
from controller.errors import BadSignature, NotCanonical
from controller.evidence.canonical import canonical, parse
from controller.ports.signer import Signer

MANIFEST_TYPE: Final = "application/vnd.fairtrial.manifest+json"
AUTHORIZATION_TYPE: Final = "application/vnd.fairtrial.authorization+json"
APPROVAL_TYPE: Final = "application/vnd.fairtrial.approval+json"
INDEX_TYPE: Final = "application/vnd.fairtrial.index+json"

_P: Final = 2**255 - 19
_ORDER_8_Y: Final = 2707385501144840649318225287225658788936804267575313519463743609750303402022
# y of every point whose order divides 8. Under such a key OpenSSL accepts one signature for any message.
_SMALL_ORDER_Y: Final = frozenset({0, 1, _P - 1, _ORDER_8_Y, _P - _ORDER_8_Y})


class EnvelopeSignature(Record):
    keyid: str
    sig: str


class Envelope(Record):
    """The DSSE JSON form. Field names are the standard's."""

    payload: str
    payloadType: str
    signatures: tuple[EnvelopeSignature, ...] = Field(min_length=1, max_length=1)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """DSSE v1: what is signed, with both lengths, so that no two pairs give the same bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, signer: Signer) -> bytes:
    """The canonical bytes of an envelope around the payload."""
    signature = signer.sign(pre_authentication_encoding(payload_type, payload))
    return canonical(
        Envelope(
            payload=base64.b64encode(payload).decode(),
            payloadType=payload_type,
            signatures=(EnvelopeSignature(keyid=signer.key.id, sig=base64.b64encode(signature).decode()),),
        )
    )


def check(envelope: bytes, payload_type: str, keys: KeyRing, where: str = "envelope") -> bytes:
    """The payload, if a trusted key signed it as this type.

    Raises BadSignature for a wrong type, key, signature or base64 spelling, and for bytes that are no envelope.
    """
    try:
        parsed = parse(envelope, Envelope, where)
    except NotCanonical as error:
        raise BadSignature(f"not one canonical DSSE envelope: {error}") from error
    if parsed.payloadType != payload_type:
        raise BadSignature(f"{where}: payload type is {parsed.payloadType!r}, not {payload_type!r}")
    payload = decode_base64(parsed.payload, f"{where}: payload")
    signature = parsed.signatures[0]
    key = keys.find(signature.keyid)
    if key is None:
        raise BadSignature(f"{where}: signed by {signature.keyid[:80]}, which is not a trusted key")
    raw = decode_base64(signature.sig, f"{where}: signature")
    check_signature(key, raw, pre_authentication_encoding(payload_type, payload), where)
    return payload


def decode_base64(text: str, where: str) -> bytes:
    """Standard base64 in its one canonical spelling: Python would otherwise ignore the bits under the padding."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadSignature(f"{where} is not base64") from error
    if base64.b64encode(data).decode() != text:
        raise BadSignature(f"{where} is not canonical base64")
    return data


def check_signature(key: PublicKey, signature: bytes, message: bytes, where: str) -> None:
    """Raises BadSignature unless the key made this signature over this message."""
    raw = bytes.fromhex(key.public_hex)
    height = int.from_bytes(raw, "little") & (2**255 - 1)
    if height >= _P or height in _SMALL_ORDER_Y:
        raise BadSignature(f"{where}: key {key.id} is of small order or not canonical, so it proves nothing")
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, message)
    except (InvalidSignature, ValueError) as error:
        raise BadSignature(f"{where}: signature does not match the bytes") from error
