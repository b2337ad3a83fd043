"""The resampling generator `shake128-mulshift64/v1`: the same draws on any machine, in any language.

Word i of replicate b is the i-th little-endian 64-bit word of SHAKE128(label || u64le(b)); the drawn task is
(word * tasks) >> 64. Row b depends on nothing else, so any chunk size, thread count or order gives the same bytes, and
no numpy random stream is involved. The bias is at most tasks / 2**64.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.domain.stream import GENERATOR
from controller.domain.stream import words as words_of

TASKS_MAX: Final = 2**20  # the 32-bit halves below are exact for fewer than 2**32 tasks
_CHUNK_WORDS: Final = 2**15  # a quarter of a MiB of words stays in the cache between the hash and the multiplication

Int64s = NDArray[np.int64]


def label(seed: str, family: str, tasks: int) -> str:
    """The ASCII label that separates this stream from every other one of the round."""
    return f"{GENERATOR}|{seed}|{family}|T={tasks}|"


def scaled(words: NDArray[np.uint64], tasks: int) -> NDArray[np.uint64]:
    """(word * tasks) >> 64 for each word, without leaving 64 bits."""
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    factor = np.uint64(tasks)
    return (high * factor + ((low * factor) >> np.uint64(32))) >> np.uint64(32)


def words(stream: str, replicate: int, count: int) -> NDArray[np.uint64]:
    """The first `count` words of one replicate's stream."""
    return np.array(words_of(stream, count, row=replicate), dtype=np.uint64)


def matrix(stream: str, resamples: int, tasks: int) -> NDArray[np.uint32]:
    """The index matrix, resamples x tasks: which task each draw of each replicate takes."""
    if not 1 <= tasks <= TASKS_MAX:
        raise ValueError(f"{tasks} tasks: the generator takes 1 to {TASKS_MAX}")
    drawn = np.empty((resamples, tasks), dtype=np.uint32)
    start_state = hashlib.shake_128(stream.encode("ascii"))
    rows = max(1, _CHUNK_WORDS // tasks)
    for first in range(0, resamples, rows):
        squeezed = []
        for replicate in range(first, min(first + rows, resamples)):
            state = start_state.copy()
            state.update(replicate.to_bytes(8, "little"))
            squeezed.append(state.digest(8 * tasks))
        chunk = np.frombuffer(b"".join(squeezed), dtype="<u8").astype(np.uint64, copy=False)
        drawn[first : first + rows] = scaled(chunk, tasks).reshape(-1, tasks)
    return drawn


def matrix_digest(drawn: NDArray[np.uint32]) -> str:
    """`sha256:<hex>` of the index matrix as 32-bit little-endian numbers, row by row."""
    return f"sha256:{hashlib.sha256(np.ascontiguousarray(drawn, dtype='<u4').tobytes()).hexdigest()}"


def multiplicities(drawn: NDArray[np.uint32]) -> Int64s:
    """How often each replicate drew each task: resamples x tasks, each row sums to the number of draws."""
    resamples, tasks = drawn.shape
    flat = drawn.astype(np.int64) + np.arange(resamples, dtype=np.int64)[:, None] * tasks
    return np.bincount(flat.ravel(), minlength=resamples * tasks).reshape(resamples, tasks).astype(np.int64, copy=False)
