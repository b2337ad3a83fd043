"""Sealed tasks are disclosed when it is due, and not a second earlier."""

from __future__ import annotations

from typing import Any

import pytest

from controller.domain import bodies
from controller.domain.instant import InstantMs
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import InvalidInput, NotPublishable
from controller.evidence.log import next_statement
from controller.evidence.retirement import check_due, closed_at, due_at, next_started_at
from controller.freeze.rules import manifest_of
from tests.world.recorded_round import START, inputs
from tests.world.sealed import sealed_task

CLOSED = InstantMs(1_800_000_000_000)  # 2027-01-15T08:00:00Z
NINETY_DAYS_LATER = InstantMs(1_807_776_000_000)  # 2027-04-15T08:00:00Z, counted by hand
SECOND = 1000


def manifest(*names: str, round_id: str = "small", at: int = START, **changes: Any) -> RoundManifest:
    given = [sealed_task(name)[0].entry for name in names]
    frozen = manifest_of(inputs(given=given, round_id=round_id), at=InstantMs(at))
    return frozen.model_copy(update=changes)


FIRST = manifest("hidden")


def log(*entries: tuple[StatementKind, Record, int]) -> list[Statement]:
    statements: list[Statement] = []
    for kind, body, at in entries:
        previous = statements[-1] if statements else None
        statements.append(next_statement(previous, kind=kind, at=InstantMs(at), subject="small", body=body))
    return statements


def start(at: int, epoch: int = 1) -> tuple[StatementKind, Record, int]:
    digest = "sha256:" + "0" * 64
    body = bodies.RoundStarted(
        manifest_digest=digest, authorization_digest=digest, epoch=epoch, pool="qemu", isolation="vm"
    )
    return StatementKind.ROUND_STARTED, body, at


@pytest.mark.parametrize(
    ("next_started", "due"),
    [
        (None, NINETY_DAYS_LATER),
        (CLOSED + 5, CLOSED + 5),
        (NINETY_DAYS_LATER - 1, NINETY_DAYS_LATER - 1),
        (NINETY_DAYS_LATER + 1, NINETY_DAYS_LATER),
        (CLOSED - 5, CLOSED),  # the next round began before this one was closed
    ],
)
def test_whichever_is_first(next_started: int | None, due: int) -> None:
    started = None if next_started is None else InstantMs(next_started)
    assert due_at(CLOSED, started) == due
    check_due(FIRST, CLOSED, started, at=InstantMs(due))
    for early in (1, SECOND, CLOSED):
        with pytest.raises(NotPublishable):
            check_due(FIRST, CLOSED, started, at=InstantMs(due - early))


def test_a_disclosure_that_comes_too_early_is_told_when_to_come_back() -> None:
    with pytest.raises(
        NotPublishable, match=r"round small: .* from 2027-04-15T08:00:00\.000Z on, .* 90 days"
    ) as caught:
        check_due(FIRST, CLOSED, None, at=InstantMs(NINETY_DAYS_LATER - SECOND))
    assert "--next" in caught.value.remedy


def test_a_round_in_progress_discloses_nothing() -> None:
    with pytest.raises(NotPublishable, match="not closed"):
        closed_at(FIRST, log(start(1)))
    closed = bodies.RoundClosed(success=0, failure=0, invalid=0, missing=4)
    assert closed_at(FIRST, log(start(1), (StatementKind.ROUND_CLOSED, closed, CLOSED))) == CLOSED


def test_the_next_round_counts_from_its_first_start() -> None:
    following = manifest("other", round_id="next", at=START + 1)
    assert next_started_at(FIRST, following, []) is None
    assert next_started_at(FIRST, following, log(start(7), start(9, epoch=2))) == 7


@pytest.mark.parametrize(
    ("following", "said"),
    [
        (manifest("other", at=START + 1, kind="measured"), "is a measured harness-round"),
        (manifest("other", at=START + 1, protocol="cost-index"), "is a rehearsal cost-index"),
        (manifest("other"), "frozen before"),
        (FIRST, "frozen before"),
        (manifest("hidden", "other", at=START + 1), "still uses hidden: disclosed tasks are replaced"),
    ],
    ids=["another kind", "another protocol", "not later", "itself", "a kept task"],
)
def test_not_every_round_is_the_next_one(following: RoundManifest, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        next_started_at(FIRST, following, log(start(1)))
