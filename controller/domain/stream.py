"""Deterministic streams of chance, derived by label from the frozen seed: `shake128-mulshift64/v1`.

Word i of a label is the i-th little-endian 64-bit word of SHAKE128(label || u64le(row)). An index below n is
(word * n) >> 64, whose bias of at most n / 2^64 is far below what any round could show. No library's generator is
involved, so two machines always agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

GENERATOR: Final = "shake128-mulshift64/v1"  # the first word of every label
T = TypeVar("T")


def words(label: str, count: int, *, row: int = 0) -> tuple[int, ...]:
    """`count` unsigned 64-bit words of the labelled stream."""
    raw = hashlib.shake_128(label.encode("ascii") + row.to_bytes(8, "little")).digest(8 * count)
    return tuple(int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(count))


def index(word: int, below: int) -> int:
    """An index in 0..below-1 from one word."""
    return (word * below) >> 64


def shuffled(items: Sequence[T], label: str) -> tuple[T, ...]:
    """The items in a random order that is a pure function of the label (Fisher-Yates, from the end)."""
    order = list(items)
    for position, word in zip(range(len(order) - 1, 0, -1), words(label, max(0, len(order) - 1)), strict=True):
        other = index(word, position + 1)
        order[position], order[other] = order[other], order[position]
    return tuple(order)
