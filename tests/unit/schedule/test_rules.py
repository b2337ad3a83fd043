"""The schedule is a pure function of the seed, arms share blocks, and a normal answer is never tried again."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.domain.bodies import AttemptClassified, AttemptSettled
from controller.domain.outcome import BLAME, RETRYABLE, EndKind
from controller.schedule import Halt, Next, Score, allocation, next_action

SEED = "5" * 64
TASKS, ARMS = ("alpha", "beta", "gamma"), ("one", "two", "three", "four")


def classified(end: EndKind, number: int = 1, *, verified: bool | None = None) -> AttemptClassified:
    return AttemptClassified(
        run="alpha.one.r1",
        number=number,
        end=end,
        reason="as arranged",
        blame=BLAME[end],
        retryable=end in RETRYABLE,
        verified=verified,
        would_have_passed=False,
    )


def settled(*, valid: bool = True) -> AttemptSettled:
    return AttemptSettled(
        requests=1, refusals=0, tokens={}, usd="0.1" if valid else None, valid=valid, problems=() if valid else ("x",)
    )


def test_every_cell_is_scheduled_once_and_positions_count_up() -> None:
    runs = allocation(TASKS, ARMS, 3, seed=SEED, round_id="r")
    assert len({run.id for run in runs}) == len(runs) == 3 * 4 * 3
    assert [run.position for run in runs] == list(range(36))


def test_a_block_holds_every_arm_of_one_task_and_repeat() -> None:
    runs = allocation(TASKS, ARMS, 3, seed=SEED, round_id="r")
    for block in range(9):
        members = [run for run in runs if run.block == block]
        assert sorted(run.arm for run in members) == sorted(ARMS)
        assert len({(run.task, run.replicate) for run in members}) == 1


def test_the_order_depends_on_the_seed_and_on_nothing_else() -> None:
    first = allocation(TASKS, ARMS, 3, seed=SEED, round_id="r")
    assert first == allocation(tuple(reversed(TASKS)), tuple(reversed(ARMS)), 3, seed=SEED, round_id="r")
    assert first != allocation(TASKS, ARMS, 3, seed="6" * 64, round_id="r")


def test_no_arm_is_always_first() -> None:
    runs = allocation([f"t{i}" for i in range(40)], ARMS, 3, seed=SEED, round_id="r")
    first = Counter(run.arm for position, run in enumerate(runs) if position % 4 == 0)
    assert all(15 <= first[arm] <= 50 for arm in ARMS), first  # 120 blocks, 30 expected each


@pytest.mark.parametrize("end", sorted(RETRYABLE))
def test_a_retryable_end_is_tried_again_twice_and_no_more(end: EndKind) -> None:
    history = [classified(end, number) for number in (1, 2, 3)]
    assert next_action(history[:1], [settled()], halted=None) == Next(2)
    assert next_action(history[:2], [settled()] * 2, halted=None) == Next(3)
    assert next_action(history, [settled()] * 3, halted=None) == Score(3, "failure")


@pytest.mark.parametrize("end", sorted(set(EndKind) - RETRYABLE))
def test_any_other_end_is_final(end: EndKind) -> None:
    assert next_action([classified(end, verified=False)], [settled()], halted=None) == Score(1, "failure")


def test_a_verified_normal_answer_is_the_only_success() -> None:
    assert next_action([classified(EndKind.NORMAL, verified=True)], [settled()], halted=None) == Score(1, "success")
    crashed = classified(EndKind.HARNESS_CRASH, 3, verified=True)
    assert next_action([crashed], [settled()], halted=None) == Score(3, "failure")


def test_a_later_success_does_not_repair_unknown_cost() -> None:
    history = [classified(EndKind.TIMEOUT, 1), classified(EndKind.NORMAL, 2, verified=True)]
    assert next_action(history, [settled(valid=False), settled()], halted=None) == Score(2, "invalid")


def test_a_halted_cell_waits_for_a_person_and_a_new_one_starts_at_one() -> None:
    assert next_action([], [], halted="ambiguous") == Halt("ambiguous")
    assert next_action([], [], halted=None) == Next(1)
