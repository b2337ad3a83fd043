"""Chance as a port: secrets come from here, and only secrets. Everything else derives from the frozen seed."""

from __future__ import annotations

from typing import Protocol


class Entropy(Protocol):
    def token_bytes(self, count: int) -> bytes:
        """Unpredictable bytes."""
        ...
