"""Opening what was sealed for a key, as a port: the private key stays behind it."""

from __future__ import annotations

from typing import Protocol

from controller.domain.sealed import RecipientKey


class Opener(Protocol):
    @property
    def key(self) -> RecipientKey:
        """The public half, and the part it is for."""
        ...

    def exchange(self, public: bytes) -> bytes:
        """The 32-byte X25519 secret shared with this public key. Raises ValueError for a key of small order."""
        ...
