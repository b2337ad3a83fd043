"""The Opener port over a private key file that only its owner can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.adapters.signer_file import KEYS_BYTES_MAX, create_private, read_private
from controller.domain.json_files import parse_record
from controller.domain.sealed import Part, RecipientKey
from controller.errors import InvalidInput, SealedKeyMissing
from controller.ports.named_files import read_named

PUBLIC_SUFFIX: Final = ".pub.json"


class FileOpener:
    """X25519 from a PEM file (PKCS #8) of mode 0600."""

    def __init__(self, part: Part, private: X25519PrivateKey) -> None:
        self._private = private
        self._key = RecipientKey.of(part, private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @classmethod
    def open(cls, path: Path, part: Part) -> FileOpener:
        """The key in that file.

        Raises SealedKeyMissing when there is no such file, InvalidInput when others may read it or it is no X25519 key.
        """
        try:
            private = read_private(path)
        except FileNotFoundError as error:
            raise SealedKeyMissing(f"this machine has no key for the {part} part of sealed tasks: {path}") from error
        except OSError as error:
            raise InvalidInput(f"{path}: {error.strerror}") from error
        if not isinstance(private, X25519PrivateKey):
            raise InvalidInput(f"{path}: the key is not X25519")
        return cls(part, private)

    @classmethod
    def create(cls, path: Path, part: Part) -> FileOpener:
        """A new key, with its public half beside it. Raises InvalidInput when the file exists."""
        made = cls(part, X25519PrivateKey.generate())
        if not create_private(path, made._private):
            raise InvalidInput(f"{path} exists; what was sealed for it could not be opened any more")
        text = json.dumps(made.key.model_dump(mode="json"), indent=2) + "\n"
        path.with_suffix(PUBLIC_SUFFIX).write_text(text)
        return made

    @property
    def key(self) -> RecipientKey:
        return self._key

    def exchange(self, public: bytes) -> bytes:
        return self._private.exchange(X25519PublicKey.from_public_bytes(public))


def read_recipient(path: Path) -> RecipientKey:
    """A public key that somebody gave us. Raises InvalidInput naming file and field."""
    try:
        return parse_record(read_named(path, bytes_max=KEYS_BYTES_MAX), RecipientKey, path.name)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
