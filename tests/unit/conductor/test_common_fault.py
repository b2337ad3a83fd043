"""A round in which no harness had its turn says so, instead of a report that looks like a result."""

from __future__ import annotations

import pytest

from controller.conductor.status import common_fault
from controller.domain.bodies import AttemptClassified
from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.evidence.log import next_statement
from tests.world.clock import StepClock


def ended(*ends: EndKind) -> list[Statement]:
    """A log in which attempts ended like this, each with its number as the reason."""
    clock, found = StepClock(InstantMs(1_000)), list[Statement]()
    for number, end in enumerate(ends, start=1):
        body = AttemptClassified(
            run="t.a.r1", number=number, end=end, reason=f"fault {number}", blame=None, retryable=False,
            verified=None, would_have_passed=False,
        )  # fmt: skip
        previous = found[-1] if found else None
        kind = StatementKind.ATTEMPT_CLASSIFIED
        found.append(next_statement(previous, kind=kind, at=clock.now(), subject=f"att-{number}", body=body))
    return found


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((), None),
        ((EndKind.INFRASTRUCTURE,), "fault 1"),
        ((EndKind.INFRASTRUCTURE, EndKind.INFRASTRUCTURE), "fault 2"),
        ((EndKind.INFRASTRUCTURE, EndKind.HARNESS_CRASH), None),
        ((EndKind.TIMEOUT, EndKind.TIMEOUT), None),
    ],
)
def test_only_a_fault_that_spared_no_attempt_is_the_machines(ends: tuple[EndKind, ...], told: str | None) -> None:
    assert common_fault(ended(*ends)) == told
