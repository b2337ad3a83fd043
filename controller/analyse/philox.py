"""Philox 4x64-10, as published with Random123: kept so that others' streams can be checked against a known answer.

Our own resamples come from `resample.py`. numpy raises the counter before its first block, so numpy's
`Philox(key=0)` starts with the block of counter 1.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 2**64 - 1
_FACTORS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS: Final = 10


def philox_block(counter: int, key: int) -> tuple[int, int, int, int]:
    """The four 64-bit words of one block; `counter` has up to 256 bits and `key` up to 128, least word first."""
    x0, x1, x2, x3 = (counter >> (64 * place) & _MASK for place in range(4))
    key_low, key_high = key & _MASK, key >> 64 & _MASK
    for _ in range(_ROUNDS):
        first, second = _FACTORS[0] * x0, _FACTORS[1] * x2
        x0, x1, x2, x3 = (second >> 64) ^ x1 ^ key_low, second & _MASK, (first >> 64) ^ x3 ^ key_high, first & _MASK
        key_low, key_high = (key_low + _STEPS[0]) & _MASK, (key_high + _STEPS[1]) & _MASK
    return x0, x1, x2, x3
