"""The ceilings, against the same rule told in exact fractions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from controller.domain.ids import AttemptId
from controller.domain.limits import SpendLimits
from controller.domain.spend import (
    USD_IN_FLIGHT,
    USD_PER_ATTEMPT,
    USD_PER_LOGICAL_RUN,
    SpendRow,
    limit_reached,
)
from controller.domain.usage import RequestState

OWN = AttemptId("att-1")
USD = st.one_of(
    st.sampled_from(["0", "0.5", "1", "0." + "0" * 29 + "1", "0." + "9" * 30, "9999999999999." + "9" * 30]),
    st.builds("{}.{:02}".format, st.integers(0, 2), st.integers(0, 99)),
)
ROWS = st.builds(
    SpendRow,
    attempt_id=st.sampled_from([OWN, AttemptId("att-2")]),
    counts=st.just(True),
    state=st.sampled_from(RequestState),
    usd=st.one_of(st.none(), USD),
    estimate_usd=USD,
)


def expected(rows: list[SpendRow], limits: SpendLimits) -> str | None:
    """Settled cost reaches a ceiling: that one. Settled cost and estimates in flight reach one: wait."""
    waits = False
    own = [row for row in rows if row.attempt_id == OWN]
    for scope, ceiling, name in (
        (own, limits.usd_per_attempt, USD_PER_ATTEMPT),
        (rows, limits.usd_per_logical_run, USD_PER_LOGICAL_RUN),
    ):
        open_rows = [row for row in scope if row.state in (RequestState.ACCEPTED, RequestState.SENT)]
        settled = sum((Fraction(row.usd or row.estimate_usd) for row in scope if row not in open_rows), Fraction(0))
        if settled >= Fraction(ceiling):
            return name
        in_flight = sum((Fraction(row.estimate_usd) for row in open_rows), Fraction(0))
        waits = waits or settled + in_flight >= Fraction(ceiling)
    return USD_IN_FLIGHT if waits else None


@given(st.lists(ROWS, max_size=12), USD.filter(lambda usd: usd != "0"), USD.filter(lambda usd: usd != "0"))
def test_money_is_compared_exactly(rows: list[SpendRow], of_attempt: str, of_run: str) -> None:
    limits = SpendLimits(usd_per_attempt=of_attempt, usd_per_logical_run=of_run)
    assert limit_reached(rows, limits, attempt_id=OWN) == expected(rows, limits)
