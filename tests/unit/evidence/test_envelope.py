from __future__ import annotations

import base64
import json

import pytest
from securesystemslib.dsse import Envelope as ReferenceEnvelope
from securesystemslib.signer._key import SSlibKey

from controller.domain.keys import KeyRing, PublicKey
from controller.errors import BadSignature
from controller.evidence.canonical import dumps
from controller.evidence.envelope import check, check_signature, pre_authentication_encoding, sign
from tests.world.signer import FixedSigner

TYPE = "application/x-test+json"
SIGNER = FixedSigner()
PAYLOAD = b'{"a":1}'  # 7 bytes: its base64 ends in "==", where lenient decoders ignore bits
SMALL_ORDER = [
    "00" * 32,
    "01" + "00" * 31,
    "01" + "00" * 30 + "80",
    "ec" + "ff" * 30 + "7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
]


def test_what_was_signed_comes_back() -> None:
    assert check(sign(TYPE, PAYLOAD, SIGNER), TYPE, SIGNER.ring) == PAYLOAD


def test_the_reference_library_reads_our_envelopes() -> None:
    reference = ReferenceEnvelope.from_dict(json.loads(sign(TYPE, PAYLOAD, SIGNER)))
    key = SSlibKey(SIGNER.key.id, "ed25519", "ed25519", {"public": SIGNER.key.public_hex})
    assert SIGNER.key.id in reference.verify([key], threshold=1)
    assert reference.pae() == pre_authentication_encoding(TYPE, PAYLOAD)


def test_every_flipped_bit_is_refused() -> None:
    envelope = sign(TYPE, PAYLOAD, SIGNER)
    for position in range(len(envelope) * 8):
        changed = bytearray(envelope)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(BadSignature):
            check(bytes(changed), TYPE, SIGNER.ring)


def test_wrong_type_key_and_second_signature_are_refused() -> None:
    envelope = sign(TYPE, PAYLOAD, SIGNER)
    with pytest.raises(BadSignature, match="payload type"):
        check(envelope, "application/x-other", SIGNER.ring)
    with pytest.raises(BadSignature, match="not a trusted key"):
        check(envelope, TYPE, FixedSigner("rival").ring)
    doubled = json.loads(envelope)
    doubled["signatures"] *= 2
    with pytest.raises(BadSignature, match="signatures"):
        check(dumps(doubled), TYPE, SIGNER.ring)


def test_a_key_id_cannot_be_lent_to_another_key() -> None:
    with pytest.raises(ValueError, match="not the SHA-256"):
        PublicKey(id=SIGNER.key.id, public_hex=FixedSigner("rival").key.public_hex)


@pytest.mark.parametrize("public_hex", SMALL_ORDER)
def test_keys_of_small_order_prove_nothing(public_hex: str) -> None:
    key = PublicKey.of(bytes.fromhex(public_hex))
    forged = b"\x01" + b"\0" * 63
    with pytest.raises(BadSignature, match="small order"):
        check_signature(key, forged, b"any message", "test")
    envelope = dumps(
        {
            "payload": base64.b64encode(PAYLOAD).decode(),
            "payloadType": TYPE,
            "signatures": [{"keyid": key.id, "sig": base64.b64encode(forged).decode()}],
        }
    )
    with pytest.raises(BadSignature):
        check(envelope, TYPE, KeyRing(keys=(key,)))
