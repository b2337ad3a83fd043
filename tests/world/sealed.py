"""Keys, chance and sealed tasks that are the same in every test run."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.domain.plan import TaskEntry
from controller.domain.sealed import PARTS, Part, RecipientKey, SealedTask
from controller.domain.task import TaskBundle
from controller.evidence.sealing import opening_of_content, seal
from tests.world.tasks import sample_bundle

OTHERS = {"task.toml": b"id = 1\n", "bug.patch": b"\xff diff", "README.md": b"notes\n"}


class LabelledEntropy:
    """The Entropy port: the hash of a label and a counter."""

    def __init__(self, label: str = "chance") -> None:
        self._label, self._drawn = label, 0

    def token_bytes(self, count: int) -> bytes:
        assert count <= 32
        self._drawn += 1
        return hashlib.sha256(f"{self._label} {self._drawn}".encode()).digest()[:count]


class LabelledOpener:
    """The Opener port; the private key is the hash of a label."""

    def __init__(self, part: Part, label: str = "") -> None:
        self._private = X25519PrivateKey.from_private_bytes(hashlib.sha256(f"{label or part} key".encode()).digest())
        self._key = RecipientKey.of(part, self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @property
    def key(self) -> RecipientKey:
        return self._key

    def exchange(self, public: bytes) -> bytes:
        return self._private.exchange(X25519PublicKey.from_public_bytes(public))


RUNNER, VERIFIER, CURATOR = (LabelledOpener(part) for part in PARTS)
RECIPIENTS: Sequence[RecipientKey] = (RUNNER.key, VERIFIER.key, CURATOR.key)


def hidden_bundle(name: str = "hidden", *, prompt: str = "Repair it.") -> TaskBundle:
    """The Python sample as a task to be sealed, with the digests of its content."""
    sample = sample_bundle("python")
    bundle = sample.model_copy(
        update={
            "entry": sample.entry.model_copy(update={"id": name, "visibility": "sealed"}),
            "prompt": prompt,
        }
    )
    digests = opening_of_content(bundle, OTHERS).model_dump(exclude={"id"})
    return bundle.model_copy(update={"entry": TaskEntry.model_validate({**dict(bundle.entry), **digests})})


@functools.cache
def sealed_task(name: str = "hidden", *, label: str = "chance") -> tuple[SealedTask, dict[Part, bytes]]:
    """That task, sealed for the three keys."""
    return seal(hidden_bundle(name), OTHERS, RECIPIENTS, LabelledEntropy(f"{label} {name}"))
