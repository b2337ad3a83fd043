"""The meter's configuration and the provider keys, which live in this process only."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.meter.wire_json import document

KEYS_BYTES_MAX: Final = 2**20
LOOPBACK: Final = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
SECURE: Final = re.compile(r"https://[a-z0-9.-]+(:\d{1,5})?")
UNIX: Final = re.compile(r"unix:/[^\0]{1,106}")
PORT_MAX: Final = 65_535
PathText = Annotated[str, Field(pattern=r"^[^\x00]+$")]


class MeterConfig(Record):
    """Everything the meter is told. Paths are absolute; `upstreams` maps a provider to its base URL without a path."""

    schema_version: Literal["fairtrial.meter/1"] = "fairtrial.meter/1"
    socket: PathText
    ledger: PathText  # a file, or the URL of a PostgreSQL database without a password
    ledger_schema: str = Field(default="fairtrial", pattern=r"^[a-z][a-z0-9_]{0,62}$")  # of that database; one a round
    rate_card: PathText
    upstreams: dict[str, str] = Field(min_length=1)
    keys: PathText | None = None  # a file of mode 0600; None when every upstream is the rehearsal model
    idle_seconds: float = Field(default=600.0, gt=0)  # longest silence of a provider inside an answer
    client_stall_seconds: float = Field(default=30.0, gt=0)  # a harness that reads nothing for so long is dropped
    drain_seconds: float = Field(default=12.0, ge=0)

    @field_validator("upstreams")
    @classmethod
    def _addresses(cls, upstreams: dict[str, str]) -> dict[str, str]:
        for provider, address in upstreams.items():
            port = re.search(r":(\d+)$", address)
            is_formed = any(pattern.fullmatch(address) for pattern in (LOOPBACK, SECURE, UNIX))
            if not is_formed or (port is not None and int(port[1]) > PORT_MAX and not address.startswith("unix:")):
                raise ValueError(
                    f"{provider}: must be https://HOST, http://127.0.0.1:PORT or unix:/PATH, without a path"
                )
        return upstreams


def read_keys(path: Path | None) -> Mapping[str, str]:
    """The provider keys by name.

    Raises InvalidInput, which never holds a key, when the file is readable by others or malformed.
    """
    if path is None:
        return {}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidInput(f"{path}: the key file can't be read: {error.strerror}") from error
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
            raise InvalidInput(
                f"{path}: the key file must be a regular file of mode 0600 that belongs to the meter's user"
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            raw = file.read(KEYS_BYTES_MAX)
    finally:
        os.close(descriptor)
    try:
        keys = document(raw)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path}: the key file is not JSON") from None
    if not isinstance(keys, dict) or not all(_is_key(value) for value in keys.values()):
        raise InvalidInput(f'{path}: the key file must be an object like {{"<key name>": "<key>"}}')
    return keys


def _is_key(value: object) -> bool:
    """Whether it can stand in a header."""
    return isinstance(value, str) and value != "" and value.isascii() and value.isprintable()
