"""Public keys, and the list of them a checker trusts."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field, model_validator

from controller.domain.record import Record


def key_id(public_hex: str) -> str:
    """`ed25519:<64 hex>`: SHA-256 of the 32 raw bytes of the public key."""
    return f"ed25519:{hashlib.sha256(bytes.fromhex(public_hex)).hexdigest()}"


class PublicKey(Record):
    """An Ed25519 public key. The id is derived from the key, so an id can't be lent to another key."""

    id: str
    algorithm: Literal["ed25519"] = "ed25519"
    public_hex: str = Field(pattern=r"^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _id_is_derived(self) -> PublicKey:
        if self.id != key_id(self.public_hex):
            raise ValueError("id is not the SHA-256 of the key")
        return self

    @classmethod
    def of(cls, public: bytes) -> PublicKey:
        """The record of 32 raw bytes."""
        return cls(id=key_id(public.hex()), public_hex=public.hex())


class KeyRing(Record):
    """Keys a checker accepts signatures from: the content of `keys.json` and of the file given with `--key`."""

    schema_version: Literal["fairtrial.keys/1"] = "fairtrial.keys/1"
    keys: tuple[PublicKey, ...] = Field(min_length=1)

    def find(self, identity: str) -> PublicKey | None:
        """The key of that id."""
        return next((key for key in self.keys if key.id == identity), None)
