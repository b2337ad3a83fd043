"""Unknown poisons the sum it is in; nothing is rounded."""

from __future__ import annotations

import pytest

from controller.domain.bodies import AttemptSettled
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.money import sum_usd
from controller.domain.provider_report import Figure
from controller.domain.usage import AttemptAccount, MeteredRequest, RequestState, Usage, ZeroBillProof
from controller.settle import settle_attempt as settle_attempt_of_lane
from controller.settle import settle_round


def row(sequence: int, state: RequestState, *, usd: str | None = None, counts: bool = True) -> MeteredRequest:
    final = state is RequestState.SETTLED
    return MeteredRequest(
        request_id=RequestId(f"q{sequence}"),
        attempt_id=AttemptId("att-1"),
        logical_run_id=LogicalRunId("t.a.r1"),
        sequence=sequence,
        dialect="anthropic",
        model="m",
        state=state,
        accepted_at=InstantMs(1),
        ended_at=InstantMs(2),
        status=200,
        body_digest="sha256:" + "0" * 64,
        provider_message_id=None,
        observed_model="m",
        usage=Usage(tokens={"in": 10, "out": 2}) if final else None,
        usd=usd,
        zero_bill_proof=ZeroBillProof.NEVER_SENT if state is RequestState.ZERO_BILL else None,
        note="",
        counts=counts,
    )


def account(*rows: MeteredRequest) -> AttemptAccount:
    return AttemptAccount(attempt_id=AttemptId("att-1"), requests=rows, refusals=(), open=False)


def settle_attempt(found: AttemptAccount) -> AttemptSettled:
    return settle_attempt_of_lane(found, observed_models=("m",))


def test_an_attempt_without_requests_cost_exactly_nothing() -> None:
    settled = settle_attempt(account())
    assert (settled.usd, settled.valid, settled.requests) == ("0", True, 0)


def test_sums_are_exact_and_tokens_add_up_by_class() -> None:
    rows = [row(i, RequestState.SETTLED, usd="0.1") for i in range(1, 11)]
    settled = settle_attempt(account(*rows))
    assert settled.usd == "1"  # ten floats of 0.1 would give 0.9999999999999999
    assert settled.tokens == {"in": 100, "out": 20}


@pytest.mark.parametrize("state", [RequestState.ACCEPTED, RequestState.SENT, RequestState.UNKNOWN])
def test_one_unsettled_request_makes_the_whole_cost_unknown(state: RequestState) -> None:
    settled = settle_attempt(account(row(1, RequestState.SETTLED, usd="0.5"), row(2, state)))
    assert settled.usd is None
    assert not settled.valid
    assert "request 2" in settled.problems[0]


def test_a_settled_row_without_a_price_is_not_settled() -> None:
    assert not settle_attempt(account(row(1, RequestState.SETTLED, usd=None))).valid


def test_a_zero_bill_proof_settles_and_a_free_count_is_outside_the_sixty() -> None:
    rows = (row(1, RequestState.ZERO_BILL, usd="0"), row(2, RequestState.SETTLED, usd="0", counts=False))
    settled = settle_attempt(account(*rows))
    assert settled.valid
    assert settled.requests == 1


def test_an_unknown_attempt_poisons_its_round_and_names_the_run() -> None:
    good = settle_attempt(account(row(1, RequestState.SETTLED, usd="0.25")))
    bad = settle_attempt(account(row(1, RequestState.UNKNOWN)))
    total = settle_round({"b.x.r1": [bad, good], "a.x.r1": [good]}, floors=["0.25", "0.25"])
    assert total.usd is None
    assert (total.floor_usd, total.figure) == ("0.5", Figure.FLOOR)
    assert total.invalid_runs == ("b.x.r1",)
    known = settle_round({"a.x.r1": [good, good]}, floors=["0.5"])
    assert (known.usd, known.floor_usd, known.figure) == ("0.5", "0.5", Figure.EXACT)


def test_a_sum_with_assigned_usage_is_an_estimate() -> None:
    good = settle_attempt(account(row(1, RequestState.SETTLED, usd="0.25")))
    assert settle_round({"a.x.r1": [good]}, floors=["0.25"], estimated=True).figure is Figure.ESTIMATED


def test_answers_of_another_model_are_counted_by_its_name() -> None:
    strange = row(2, RequestState.UNKNOWN).model_copy(update={"observed_model": "m-2"})
    settled = settle_attempt(account(row(1, RequestState.SETTLED, usd="0.5"), strange))
    assert settled.off_lane_models == {"m-2": 1}


def test_sum_of_nothing_is_zero_and_of_unknown_is_unknown() -> None:
    assert sum_usd([]) == "0"
    assert sum_usd(["1", None]) is None
