"""Trusted timestamps (RFC 3161) as a port: nothing is sent anywhere; requests and responses are bytes."""

from __future__ import annotations

from typing import Protocol

from controller.domain.instant import InstantMs


class TimeAuthority(Protocol):
    def time_of(self, response: bytes, data: bytes) -> InstantMs:
        """When the pinned authority saw the digest of the data, as it says itself.

        Raises BadSignature for a response that is not signed by it, or that is about other data.
        """
        ...
