"""May one more request be accepted? The one rule of an attempt's and a logical run's ceilings."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from controller.domain.ids import AttemptId
from controller.domain.limits import SpendLimits
from controller.domain.money import EXACT, UsdText
from controller.domain.record import Record
from controller.domain.usage import RequestState

REQUESTS_PER_ATTEMPT: Final = "requests_per_attempt"
REQUESTS_PER_LOGICAL_RUN: Final = "requests_per_logical_run"
USD_PER_ATTEMPT: Final = "usd_per_attempt"
USD_PER_LOGICAL_RUN: Final = "usd_per_logical_run"
COUNT_TOKENS_PER_ATTEMPT: Final = "count_tokens_per_attempt"
# Not a ceiling reached: settled cost is below it, but what is in flight might still fill it. Ask again when it settles.
USD_IN_FLIGHT: Final = "usd_in_flight"
# Not ceilings either: the attempt may send nothing more.
ATTEMPT_CLOSED: Final = "attempt_closed"
ATTEMPT_EXPIRED: Final = "attempt_expired"


class SpendRow(Record):
    """What one accepted request of a logical run means for its ceilings."""

    attempt_id: AttemptId
    counts: bool
    state: RequestState
    usd: UsdText | None
    estimate_usd: UsdText


class _Scope:
    """What the requests of an attempt or of a logical run cost: settled, and in flight at most.

    Exact Decimals: ten times faster than Fractions, and every request waits while all of its logical run is summed.
    """

    def __init__(self) -> None:
        self.settled = self.in_flight = Decimal(0)

    def add(self, row: SpendRow) -> None:
        if row.state.is_open:
            self.in_flight = EXACT.add(self.in_flight, Decimal(row.estimate_usd))
        else:
            # An unknown cost is taken at its upper bound here, so that an unanswered question never widens a budget.
            usd = row.usd if row.usd is not None else row.estimate_usd
            self.settled = EXACT.add(self.settled, Decimal(usd))


def limit_reached(
    rows: Iterable[SpendRow], limits: SpendLimits, *, attempt_id: AttemptId, counts: bool = True
) -> str | None:
    """The name of the limit that forbids one more request of the attempt, or None.

    `rows` are all accepted requests of the logical run. Money is tested by "settled cost plus estimates in flight is
    below the ceiling", so the sum may pass a ceiling by one request at most.
    """
    run = list(rows)
    own = [row for row in run if row.attempt_id == attempt_id]
    if not counts:
        counted = sum(not row.counts for row in own)
        return COUNT_TOKENS_PER_ATTEMPT if counted >= limits.count_tokens_per_attempt else None
    if sum(row.counts for row in own) >= limits.requests_per_attempt:
        return REQUESTS_PER_ATTEMPT
    if sum(row.counts for row in run) >= limits.requests_per_logical_run:
        return REQUESTS_PER_LOGICAL_RUN
    of_own, of_run = _Scope(), _Scope()
    for row in run:
        of_run.add(row)
        if row.attempt_id == attempt_id:
            of_own.add(row)
    scopes = (
        (of_own, Decimal(limits.usd_per_attempt), USD_PER_ATTEMPT),
        (of_run, Decimal(limits.usd_per_logical_run), USD_PER_LOGICAL_RUN),
    )
    for scope, ceiling, name in scopes:
        if scope.settled >= ceiling:
            return name
    if any(EXACT.add(scope.settled, scope.in_flight) >= ceiling for scope, ceiling, _ in scopes):
        return USD_IN_FLIGHT
    return None
