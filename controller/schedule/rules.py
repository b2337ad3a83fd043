"""Random blocks, and the retry rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.domain.bodies import AttemptClassified, AttemptSettled
from controller.domain.ids import ArmId, TaskId, logical_run_id
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun
from controller.domain.stream import GENERATOR, shuffled


def allocation(
    tasks: Sequence[str], arms: Sequence[str], replicates: int, *, seed: str, round_id: str
) -> tuple[LogicalRun, ...]:
    """Every logical run in order. A block holds all arms of one task and repeat, so that drift in the provider
    falls on all arms alike; blocks and the arms inside them are in random order from the seed."""
    blocks = [(task, replicate) for task in sorted(tasks) for replicate in range(1, replicates + 1)]
    order = shuffled(blocks, f"{GENERATOR}|{seed}|schedule.blocks|{round_id}")
    runs: list[LogicalRun] = []
    for block, (task, replicate) in enumerate(order):
        label = f"{GENERATOR}|{seed}|schedule.arms|{task}|r{replicate}"
        for arm in shuffled(sorted(arms), label):
            name = logical_run_id(TaskId(task), ArmId(arm), replicate)
            runs.append(LogicalRun(id=name, task=task, arm=arm, replicate=replicate, position=len(runs), block=block))
    return tuple(runs)


@dataclass(frozen=True)
class Next:
    """Start (or go on with) attempt `number`."""

    number: int


@dataclass(frozen=True)
class Score:
    """The logical run is over; `attempt` is the scored one."""

    attempt: int
    outcome: str  # success, failure or invalid


@dataclass(frozen=True)
class Halt:
    """A person must decide first."""

    reason: str


Action = Next | Score | Halt


def next_action(
    classified: Sequence[AttemptClassified], settled: Sequence[AttemptSettled], *, halted: str | None
) -> Action:
    """What comes next after the given finished attempts, in order of their numbers.

    Retried are a harness crash, a timeout, a provider error and an infrastructure fault, at most twice. An attempt
    whose account did not settle makes the whole logical run measurement-invalid: a later success cannot repair
    unknown cost.
    """
    if halted is not None:
        return Halt(halted)
    if not classified:
        return Next(1)
    last = classified[-1]
    if not all(account.valid for account in settled):
        return Score(last.number, "invalid")
    if last.end is EndKind.NORMAL and last.verified:
        return Score(last.number, "success")
    if last.retryable and last.number < ATTEMPTS_PER_LOGICAL_RUN_MAX:
        return Next(last.number + 1)
    return Score(last.number, "failure")
