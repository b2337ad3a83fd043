"""The Signer port over a private key file that only its owner can read."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from pydantic import ValidationError

from controller.domain.keys import KeyRing, PublicKey
from controller.domain.record import field_faults
from controller.errors import InvalidInput
from controller.ports.named_files import read_named

KEYS_BYTES_MAX: Final = 2**20


class FileSigner:
    """Ed25519 from a PEM file (PKCS #8) of mode 0600."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._key = PublicKey.of(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @classmethod
    def open(cls, path: Path) -> FileSigner:
        """Read the key, or generate it at first use.

        Raises InvalidInput when others may read the file or it holds no Ed25519 key.
        """
        if not path.exists():
            create_private(path, Ed25519PrivateKey.generate())
        private = read_private(path)
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidInput(f"{path}: the key is not Ed25519")
        return cls(private)

    @property
    def key(self) -> PublicKey:
        return self._key

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


def read_keys(path: Path) -> KeyRing:
    """The public keys in a file a person was given, such as a publisher's `keys.json`.

    Unlike evidence it may be spelled freely: an editor's newline must not cost anybody his trust. Raises InvalidInput.
    """
    try:
        return KeyRing.model_validate_json(read_named(path, bytes_max=KEYS_BYTES_MAX))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidInput(f"{path}: {field_faults(error, whole='the file')[0]}") from error


def read_private(path: Path) -> PrivateKeyTypes:
    """The private key in a PEM file. Raises OSError, or InvalidInput when others may read it or it holds no key."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInput(f"{path}: the private key may be read by others", remedy=f"Run `chmod 600 {path}`.")
    try:
        return load_pem_private_key(read_named(path, bytes_max=KEYS_BYTES_MAX), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{path}: not an unencrypted PEM private key") from error


def create_private(path: Path, private: Ed25519PrivateKey | X25519PrivateKey) -> bool:
    """Write a new key all at once; False when there is one. When two processes race, the first one's key stays."""
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".key-")  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
