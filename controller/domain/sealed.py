"""Sealed tasks: content that is encrypted until it is disclosed, and the commitment that is published instead.

The content lies in three parts, so that access to them can be separated:
  runner    what a harness receives: prompt and base
  verifier  what judges it: hidden cases, driver, gold patch, protected paths
  curator   the salt of the commitment and the rest of the task's directory; curators can open the other two as well
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from controller.domain.encoded import EncodedBytes
from controller.domain.ids import Digest, Slug
from controller.domain.plan import TaskEntry
from controller.domain.record import Record
from controller.domain.tree import TreeFile

Part = Literal["runner", "verifier", "curator"]
PARTS: Final[tuple[Part, ...]] = ("runner", "verifier", "curator")
SALT_BYTES: Final = 32

Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RecipientId = Annotated[str, StringConstraints(pattern=r"^x25519:[0-9a-f]{64}$")]


class RecipientKey(Record):
    """A public X25519 key and the part that it is for. The id is derived, so an id can't be lent to another key."""

    schema_version: Literal["fairtrial.recipient/1"] = "fairtrial.recipient/1"
    part: Part
    id: RecipientId
    public_hex: Hex32

    @model_validator(mode="after")
    def _id_is_derived(self) -> Self:
        if self.id != recipient_id(bytes.fromhex(self.public_hex)):
            raise ValueError("id is not the SHA-256 of the key")
        return self

    @classmethod
    def of(cls, part: Part, public: bytes) -> RecipientKey:
        """The record of 32 raw bytes."""
        return cls(part=part, id=recipient_id(public), public_hex=public.hex())


def recipient_id(public: bytes) -> str:
    """`x25519:<64 hex>`: SHA-256 of the 32 raw bytes of the public key."""
    return f"x25519:{hashlib.sha256(public).hexdigest()}"


class WrappedKey(Record):
    """The key of one part, encrypted for one recipient under a key agreed with an ephemeral one."""

    recipient: RecipientId
    ephemeral_hex: Hex32
    wrapped_hex: str = Field(pattern=r"^[0-9a-f]{96}$")  # 32 bytes and their tag


class SealedTask(Record):
    """`task.json` of a sealed task: what anybody may know, and who can open what."""

    schema_version: Literal["fairtrial.sealed-task/1"] = "fairtrial.sealed-task/1"
    entry: TaskEntry
    curator_digest: Digest  # ciphertext
    keys: dict[Part, tuple[WrappedKey, ...]]
    is_rehearsable: bool

    @model_validator(mode="after")
    def _is_sealed(self) -> Self:
        if self.entry.sealed is None:
            raise ValueError("entry: is not sealed")
        if set(self.keys) != set(PARTS):
            raise ValueError(f"keys: must be of {', '.join(PARTS)}")
        return self

    @property
    def commitment(self) -> str:
        """The task's Merkle leaf hash."""
        assert self.entry.sealed is not None
        return self.entry.sealed.commitment

    def ciphertext_digest(self, part: Part) -> str:
        """What the encrypted part must hash to."""
        assert self.entry.sealed is not None
        digests = {"runner": self.entry.sealed.runner_digest, "verifier": self.entry.sealed.verifier_digest}
        return digests.get(part, self.curator_digest)


class Opening(Record):
    """What a commitment stands for: its canonical bytes follow the salt in the Merkle leaf."""

    id: Slug
    task_digest: Digest
    prompt_digest: Digest
    base_digest: Digest
    verifier_digest: Digest
    gold_digest: Digest


class RunnerPart(Record):
    """Plaintext of the part for machines that run harnesses."""

    prompt: str
    base: dict[str, TreeFile]
    rehearsal_json: str | None
    verify_seconds: int


class VerifierPart(Record):
    """Plaintext of the part for machines that verify."""

    verifier: dict[str, EncodedBytes]
    gold_patch: EncodedBytes
    protected: tuple[str, ...]


class CuratorPart(Record):
    """Plaintext of the part for curators; `files` are those of the task's directory that are in no other part."""

    salt_hex: Hex32
    files: dict[str, EncodedBytes]


class RevealMark(Record):
    """Left in the store beside a task whose content was disclosed: it can't be ranked again."""

    schema_version: Literal["fairtrial.revealed/1"] = "fairtrial.revealed/1"
    id: Slug
    round_id: Slug
    manifest_digest: Digest
    opening: Opening
