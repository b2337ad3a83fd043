"""The root of an RFC 6962 tree over SHA-256."""

from __future__ import annotations

import hashlib
from typing import Collection, Dict, List, Sequence


def sha256_digest(data: bytes) -> str:
    """`sha256:<hex>` of the bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf's data."""
    return hashlib.sha256(b"\x00" + data).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes."""
    return roots_at(leaves, {len(leaves)})[len(leaves)]


def roots_at(leaves: Sequence[bytes], sizes: Collection[int]) -> Dict[int, bytes]:
    """The roots over the first leaf hashes, for each of the sizes that there are.

    Perfect trees of falling height stand side by side, one for each bit of the size; from the right, each is joined to
    what stands at its right.
    """
    found = {0: hashlib.sha256(b"").digest()} if 0 in sizes else {}
    trees: List[bytes] = []
    for size, leaf in enumerate(leaves, start=1):
        trees.append(leaf)
        bits = size
        while bits % 2 == 0:
            right = trees.pop()
            trees[-1] = _node(trees[-1], right)
            bits //= 2
        if size in sizes:
            joined = trees[-1]
            for left in trees[-2::-1]:
                joined = _node(left, joined)
            found[size] = joined
    return found


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()
