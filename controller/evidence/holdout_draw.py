"""One index without bias from a beacon: SHA-256 in counter mode, and words that would favour small indices are skipped.

seed  = SHA-256("holdout-select/v1" 0x00, chain hash, round, SHA-256(signature), manifest digest, n)
block = SHA-256(seed, counter), counter = 0, 1, 2, ...; each block is four words
index = the first word below 2^64 - (2^64 mod n), modulo n

Digests are 32 raw bytes; round, n, counter and words are 8 bytes, the most significant first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from controller.domain.beacon import Beacon
from controller.errors import BeaconRejected

RULE: Final = "holdout-select/v1"
WORD_BYTES: Final = 8
BLOCKS_MAX: Final = 64  # 256 words; each is skipped with a chance below one half


def draw(chain_hash: bytes, beacon: Beacon, manifest_digest: str, n: int) -> int:
    """An index in 0..n-1, every one equally likely. Raises BeaconRejected when no word will do, which never happens."""
    for word in _words(seed(chain_hash, beacon, manifest_digest, n)):
        index = residue(word, n)
        if index is not None:
            return index
    raise BeaconRejected(f"{RULE}: none of {BLOCKS_MAX} blocks holds an index below {n}")


def seed(chain_hash: bytes, beacon: Beacon, manifest_digest: str, n: int) -> bytes:
    """What binds the draw to chain, round, beacon, manifest and the number of candidates: 32 bytes."""
    parts = (
        RULE.encode() + b"\0",
        chain_hash,
        beacon.round.to_bytes(8, "big"),
        beacon.randomness,
        bytes.fromhex(manifest_digest.removeprefix("sha256:")),
        n.to_bytes(8, "big"),
    )
    return hashlib.sha256(b"".join(parts)).digest()


def residue(word: int, n: int, *, bits: int = 8 * WORD_BYTES) -> int | None:
    """The index a word of that many bits stands for; None for a word of the last, incomplete run of n."""
    words = 1 << bits
    return word % n if word < words - words % n else None


def _words(start: bytes) -> Iterator[int]:
    for counter in range(BLOCKS_MAX):
        block = hashlib.sha256(start + counter.to_bytes(8, "big")).digest()
        for place in range(0, len(block), WORD_BYTES):
            yield int.from_bytes(block[place : place + WORD_BYTES], "big")
