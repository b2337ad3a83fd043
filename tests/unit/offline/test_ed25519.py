"""Ed25519 in plain integers: the vectors of RFC 8032, another implementation, and what must be refused."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.offline import ed25519

# RFC 8032, section 7.1: tests 1, 2 and 3.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
KEY, MESSAGE, SIGNATURE = (bytes.fromhex(part) for part in VECTORS[1])
SMALL_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (ed25519.P - 1).to_bytes(32, "little"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard(key: str, message: str, signature: str) -> None:
    assert ed25519.verify(bytes.fromhex(key), bytes.fromhex(signature), bytes.fromhex(message))


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=100))
def test_signatures_of_another_implementation_are_accepted(seed: bytes, message: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert ed25519.verify(public, private.sign(message), message)
    assert not ed25519.verify(public, private.sign(message), message + b"!")


@pytest.mark.parametrize("bit", range(0, 512, 7))
def test_every_bit_of_a_signature_matters(bit: int) -> None:
    changed = bytearray(SIGNATURE)
    changed[bit // 8] ^= 1 << bit % 8
    assert not ed25519.verify(KEY, bytes(changed), MESSAGE)


def test_a_scalar_beyond_the_order_is_refused() -> None:
    scalar = int.from_bytes(SIGNATURE[32:], "little") + ed25519.ORDER
    assert not ed25519.verify(KEY, SIGNATURE[:32] + scalar.to_bytes(32, "little"), MESSAGE)


@pytest.mark.parametrize("key", SMALL_ORDER)
@pytest.mark.parametrize("sign", [0, 0x80])
def test_a_key_of_small_order_proves_nothing(key: bytes, sign: int) -> None:
    """With such a key, R of small order and S = 0, one in at most eight messages would be signed by nobody."""
    weak = key[:31] + bytes([key[31] | sign])
    for number in range(16):
        for r in SMALL_ORDER:
            assert not ed25519.verify(weak, r + bytes(32), b"message %d" % number)


def test_an_encoding_that_is_not_reduced_is_no_point() -> None:
    assert ed25519.decode((ed25519.P + 3).to_bytes(32, "little")) is None
    assert ed25519.decode((1 | 1 << 255).to_bytes(32, "little")) is None
    assert ed25519.decode((2).to_bytes(32, "little")) is None  # of no point of the curve


@pytest.mark.parametrize("length", [0, 31, 33])
def test_inputs_of_other_lengths_are_refused(length: int) -> None:
    assert not ed25519.verify(KEY[:1] * length, SIGNATURE, MESSAGE)
    assert not ed25519.verify(KEY, SIGNATURE[:1] * (length * 2), MESSAGE)


def test_the_base_point_is_that_of_the_standard() -> None:
    assert ed25519.encode(ed25519.BASE).hex() == "58" + "66" * 31
    assert not ed25519.has_small_order(ed25519.BASE)
