"""Public randomness as ports: a relay is asked over the network, a signature is checked by a pairing library."""

from __future__ import annotations

from typing import Protocol

from controller.domain.beacon import Scheme


class Relays(Protocol):
    def fetch(self, url: str) -> bytes:
        """The body of one GET. Raises BeaconUnavailable saying why for anything but a small, prompt 200."""
        ...


class BeaconSignatures(Protocol):
    def check(self, scheme: Scheme, public_key: bytes, message: bytes, signature: bytes) -> None:
        """Raises BeaconRejected unless the key made this signature, both are points of their curve's prime-order
        subgroup in their one compressed spelling, and neither is the point at infinity.
        """
        ...
