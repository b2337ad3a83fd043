"""The resamples: one index matrix per round, the sums of columns under it, and its nearest-rank quantiles.

Many columns are packed into one large integer per task, side by side, so that one addition sums all of them.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from bisect import bisect_left
from fractions import Fraction
from typing import Dict, List, Optional, Sequence, Tuple

from .schedule import GENERATOR, words


class Draws:
    """Which task each draw of each replicate takes; every replicate draws as many tasks as there are."""

    def __init__(self, seed: str, tasks: int, resamples: int) -> None:
        self.tasks = tasks
        self.label = f"{GENERATOR}|{seed}|harness-round|T={tasks}|"
        self.rows = [
            array("I", ((word * tasks) >> 64 for word in words(self.label, row, tasks))) for row in range(resamples)
        ]

    @property
    def digest(self) -> str:
        """SHA-256 of all indices as 32-bit little-endian numbers, row by row."""
        found = hashlib.sha256()
        for row in self.rows:
            found.update(struct.pack(f"<{self.tasks}I", *row))
        return f"sha256:{found.hexdigest()}"

    def sums(self, columns: Sequence[Sequence[int]]) -> List[List[int]]:
        """For each column of one number per task, its sum over the drawn tasks, for every replicate."""
        width = max((sum(column) * self.tasks).bit_length() for column in columns) // 8 + 1
        return [list(column) for column in zip(*self._packed_sums(columns, width))]

    def _packed_sums(self, columns: Sequence[Sequence[int]], width: int) -> List[Tuple[int, ...]]:
        size = width * len(columns)
        packed = [
            int.from_bytes(b"".join(column[task].to_bytes(width, "little") for column in columns), "little")
            for task in range(self.tasks)
        ]
        starts = range(0, size, width)
        found = []
        for row in self.rows:
            raw = sum(map(packed.__getitem__, row)).to_bytes(size, "little")
            found.append(tuple(int.from_bytes(raw[start : start + width], "little") for start in starts))
        return found

    def quantiles(self, by_task: Sequence[Sequence[int]], shares: Sequence[Fraction]) -> List[List[Optional[int]]]:
        """For each share the nearest-rank quantile of the drawn values, for every replicate; None where none was drawn.

        Per task, the packed fields count its values at or below each distinct value.
        """
        distinct = sorted({value for values in by_task for value in values})
        place: Dict[int, int] = {value: index for index, value in enumerate(distinct)}
        packed = []
        for values in by_task:
            counts = [0] * len(distinct)
            for value in values:
                counts[place[value]] += 1
            for index in range(1, len(counts)):
                counts[index] += counts[index - 1]
            packed.append(int.from_bytes(struct.pack(f"<{len(counts)}I", *counts), "little"))
        form = struct.Struct(f"<{len(distinct)}I")
        found: List[List[Optional[int]]] = [[] for _ in shares]
        for row in self.rows:
            cumulated = form.unpack(sum(map(packed.__getitem__, row)).to_bytes(form.size, "little"))
            for answers, share in zip(found, shares):
                rank = -(-share.numerator * cumulated[-1] // share.denominator)
                answers.append(distinct[bisect_left(cumulated, rank)] if rank else None)
        return found


def nearest_rank(values: Sequence[int], share: Fraction) -> int:
    """The value at rank ceil(share * n), counted from 1."""
    return sorted(values)[max(1, -(-share.numerator * len(values) // share.denominator)) - 1]
