"""The Relays port over HTTPS: one small answer within a deadline, no redirect, no compression, no cookie, no proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Literal

import aiohttp
from pydantic import Field, ValidationError

from controller.adapters.strict_toml import strict_toml
from controller.domain.record import Record, field_faults
from controller.errors import BeaconUnavailable, InvalidInput
from controller.ports.named_files import read_named

TOTAL_SECONDS: Final = 10.0  # a relay answers in well under one


class HttpRelays:
    """Asks with a connection of its own each time; certificates are checked against this machine's authorities."""

    def __init__(self, *, bytes_max: int, total_seconds: float = TOTAL_SECONDS) -> None:
        self._bytes_max = bytes_max
        self._timeout = aiohttp.ClientTimeout(total=total_seconds)

    def fetch(self, url: str) -> bytes:
        try:
            return asyncio.run(self._fetch(url))
        except TimeoutError:
            raise BeaconUnavailable(f"no answer within {self._timeout.total:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise BeaconUnavailable(f"{type(error).__name__}: {str(error)[:200]}") from None

    async def _fetch(self, url: str) -> bytes:
        async with (
            aiohttp.ClientSession(
                timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            ) as session,
            session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as answer,
        ):
            if answer.status != 200:
                raise BeaconUnavailable(f"status {answer.status}")
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > self._bytes_max:
                    raise BeaconUnavailable(f"longer than {self._bytes_max} bytes")
            return bytes(body)


class RelaysFile(Record):
    """`policies/randomness/relays.toml`: the relays that are asked unless others are named."""

    schema_version: Literal["fairtrial.relays/1"] = Field(alias="schema")
    relays: tuple[str, ...]


def load_relays(path: Path) -> tuple[str, ...]:
    """The relays of the file. Raises InvalidInput naming file and field."""
    try:
        return RelaysFile.model_validate(strict_toml(read_named(path))).relays
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidInput("\n".join(f"{path}: {fault}" for fault in field_faults(error))) from None
    except ValueError as error:
        raise InvalidInput(f"{path}: {error}") from error
