"""Keys that persons hold: Ed25519 in a passphrase-protected PEM file. The publisher's own key is never one of them."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from controller.adapters.signer_file import KEYS_BYTES_MAX, FileSigner
from controller.errors import InvalidInput
from controller.ports.named_files import read_named

PASSPHRASE_BYTES_MIN: Final = 12  # the file's own key derivation is quick, so the passphrase has to be long
PASSPHRASE_BYTES_MAX: Final = 1024


def read_passphrase(descriptor: int | None, *, twice: bool = False) -> bytes:
    """From an open file descriptor, up to a line's end, or from the terminal; never from arguments or the environment.

    Raises InvalidInput when there is no terminal, when the two entries differ, or when it is too short or too long.
    """
    if descriptor is not None:
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as source:
                given = source.readline(PASSPHRASE_BYTES_MAX + 2).rstrip(b"\r\n")
        except OSError as error:
            raise InvalidInput(f"file descriptor {descriptor}: {error.strerror}") from error
    else:
        if not sys.stdin.isatty():
            raise InvalidInput(
                "there is no terminal to type a passphrase on", remedy="Name a file descriptor with --passphrase-fd."
            )
        given = getpass.getpass("Passphrase: ").encode()
        if twice and getpass.getpass("Again: ").encode() != given:
            raise InvalidInput("the two passphrases differ", remedy="Type it again; nothing was written.")
    if not PASSPHRASE_BYTES_MIN <= len(given) <= PASSPHRASE_BYTES_MAX:
        raise InvalidInput(
            f"the passphrase has {len(given)} bytes",
            remedy=f"Use {PASSPHRASE_BYTES_MIN} to {PASSPHRASE_BYTES_MAX} bytes.",
        )
    return given


def new_person_key(path: Path, passphrase: bytes) -> FileSigner:
    """Make a key and write it, readable by its owner only. Raises InvalidInput when the file exists."""
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise InvalidInput(f"{path} exists; a key is never overwritten", remedy="Name another file.") from error
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    return FileSigner(private)


def open_person_key(path: Path, passphrase: bytes) -> FileSigner:
    """The key in the file. Raises InvalidInput for a wrong passphrase, and for a key that no passphrase protects."""
    try:
        private = load_pem_private_key(read_named(path, bytes_max=KEYS_BYTES_MAX), password=passphrase)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except TypeError as error:
        raise InvalidInput(
            f"{path}: no passphrase protects this key, so it is no person's",
            remedy="Make one with `fairtrial approve --new-key FILE`.",
        ) from error
    except ValueError as error:
        raise InvalidInput(f"{path}: not a PEM key, or not its passphrase") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise InvalidInput(f"{path}: the key is not Ed25519")
    return FileSigner(private)
