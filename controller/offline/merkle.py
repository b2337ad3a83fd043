"""The root of an RFC 6962 tree over SHA-256."""

from __future__ import annotations

import hashlib
from typing import Sequence


def sha256_digest(data: bytes) -> str:
    """`sha256:<hex>` of the bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf's data."""
    return hashlib.sha256(b"\x00" + data).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes. A level's odd last node moves up as it is, which equals the recursive definition."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = list(leaves)
    while len(level) > 1:
        paired = [hashlib.sha256(b"\x01" + a + b).digest() for a, b in zip(level[::2], level[1::2])]
        level = paired + level[2 * len(paired) :]
    return level[0]
