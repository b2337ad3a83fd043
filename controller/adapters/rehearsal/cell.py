"""Which attempt a request belongs to: the rehearsal provider's keys name it.

A key is `rehearsal:<task>:<arm>:<replicate>:<attempt>`. The metering proxy puts it in place of the run token, as it
would put a provider's key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.adapters.rehearsal.conversation import RequestRefused

_KEY: Final = re.compile(r"rehearsal:([a-z0-9-]{1,40}):([a-z0-9-]{1,40}):([1-9][0-9]{0,3}):([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Cell:
    """One attempt at one logical run, as the key names it."""

    task: str
    arm: str
    replicate: int
    attempt: int

    @property
    def key(self) -> str:
        """The provider key that names this attempt."""
        return f"rehearsal:{self.task}:{self.arm}:{self.replicate}:{self.attempt}"


def cell_of_key(key: str) -> Cell | None:
    """The attempt that a provider key names; None for any other text."""
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    task, arm, replicate, attempt = found.groups()
    return Cell(task=task, arm=arm, replicate=int(replicate), attempt=int(attempt))


def cell_of_headers(headers: Mapping[str, str]) -> Cell:
    """The attempt whose key is in `x-api-key`, `x-goog-api-key` or `Authorization: Bearer`.

    Raises RequestRefused (401) for a missing or malformed key.
    """
    scheme, _, bearer = headers.get("Authorization", "").partition(" ")
    for key in (
        headers.get("x-api-key", ""),
        headers.get("x-goog-api-key", ""),
        bearer.strip() if scheme.lower() == "bearer" else "",
    ):
        if (cell := cell_of_key(key)) is not None:
            return cell
    raise RequestRefused(401, "The key must read rehearsal:<task>:<arm>:<replicate>:<attempt>.")
