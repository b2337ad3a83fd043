"""A signer with a fixed key, so that bundles made in tests are the same bytes every time."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.domain.keys import KeyRing, PublicKey


class FixedSigner:
    """The Signer port; the private key is the hash of a label."""

    def __init__(self, label: str = "publisher") -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(label.encode()).digest())
        self._key = PublicKey.of(self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @property
    def key(self) -> PublicKey:
        return self._key

    @property
    def ring(self) -> KeyRing:
        return KeyRing(keys=(self._key,))

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)
