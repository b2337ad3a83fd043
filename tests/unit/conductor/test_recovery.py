"""After a crash: adopt what lives, accept what is done, begin again only what spent nothing, else halt."""

from __future__ import annotations

import itertools

import pytest

from controller.conductor.recovery import Decision, Found, decide
from controller.domain.ids import AttemptId
from controller.domain.usage import AttemptAccount, RequestState
from tests.unit.settle.test_rules import row


def found(
    *, fresh: bool = False, durable: bool = False, alive: bool = False, requests: int = 0, artifacts: int = 0
) -> Found:
    rows = tuple(row(i, RequestState.SETTLED, usd="0.1") for i in range(1, requests + 1))
    account = AttemptAccount(attempt_id=AttemptId("att-1"), requests=rows, refusals=(), open=False)
    return Found(fresh=fresh, result_durable=durable, machine_alive=alive, artifacts=artifacts, account=account)


@pytest.mark.parametrize(
    ("state", "decision"),
    [
        (found(fresh=True), Decision.CONTINUE),
        (found(durable=True, requests=3), Decision.ACCEPT),
        (found(alive=True, requests=3), Decision.CONTINUE),
        (found(), Decision.BEGIN),
        (found(artifacts=1), Decision.LOST),
        (found(requests=1), Decision.HALT),
        (found(requests=1, artifacts=1), Decision.HALT),
    ],
)
def test_the_one_allowed_way_on(state: Found, decision: Decision) -> None:
    assert decide(state) is decision


def test_nothing_that_spent_is_ever_begun_again() -> None:
    for fresh, durable, alive in itertools.product([False, True], repeat=3):
        state = found(fresh=fresh, durable=durable, alive=alive, requests=1)
        assert decide(state) is not Decision.BEGIN
