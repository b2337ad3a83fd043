"""Instants in evidence: whole milliseconds since the epoch, UTC. Only adapters read a clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType

InstantMs = NewType("InstantMs", int)


def instant_text(at: InstantMs) -> str:
    """RFC 3339 with milliseconds: `2026-11-30T16:36:50.000Z`."""
    moment = datetime.fromtimestamp(at // 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"
