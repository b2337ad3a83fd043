"""Signing as a port: the private key stays behind it."""

from __future__ import annotations

from typing import Protocol

from controller.domain.keys import PublicKey


class Signer(Protocol):
    @property
    def key(self) -> PublicKey:
        """The public half."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The 64-byte Ed25519 signature (RFC 8032, deterministic)."""
        ...
