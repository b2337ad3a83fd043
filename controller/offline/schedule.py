"""Step 8: the order of all logical runs, from the seed alone."""

from __future__ import annotations

import hashlib
import struct
from typing import List, Sequence, Tuple, TypeVar

from .plan import Plan, Run, by_id, run_id
from .refusal import Refused

GENERATOR = "shake128-mulshift64/v1"
T = TypeVar("T")


def words(label: str, row: int, count: int) -> Tuple[int, ...]:
    """Unsigned 64-bit words of one row of a labelled stream."""
    raw = hashlib.shake_128(label.encode("ascii") + struct.pack("<Q", row)).digest(8 * count)
    return struct.unpack(f"<{count}Q", raw)


def check_schedule(plan: Plan) -> str:
    """(8) The seed gives this schedule; every task, arm and repeat is in it once."""
    if allocation(plan) != list(plan.schedule):
        raise Refused("the schedule does not follow from the seed")
    return f"{len(plan.schedule)} logical runs in the order of the seed"


def allocation(plan: Plan) -> List[Run]:
    """A block is one task at one repeat under all arms. Blocks are shuffled, and the arms inside each."""
    blocks = [(task.id, repeat) for task in by_id(plan.tasks) for repeat in range(1, plan.replicates + 1)]
    arms = [arm.id for arm in by_id(plan.arms)]
    runs: List[Run] = []
    for block, (task, repeat) in enumerate(
        _shuffled(blocks, f"{GENERATOR}|{plan.seed}|schedule.blocks|{plan.round_id}")
    ):
        for arm in _shuffled(arms, f"{GENERATOR}|{plan.seed}|schedule.arms|{task}|r{repeat}"):
            runs.append(Run(run_id(task, arm, repeat), task, arm, repeat, len(runs), block))
    return runs


def _shuffled(items: Sequence[T], label: str) -> List[T]:
    """Fisher-Yates from the last place down: place i changes with place (word * (i + 1)) >> 64."""
    order = list(items)
    for word, place in zip(words(label, 0, len(order) - 1), range(len(order) - 1, 0, -1)):
        other = (word * (place + 1)) >> 64
        order[place], order[other] = order[other], order[place]
    return order
