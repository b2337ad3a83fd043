"""The rules of reconciliation on small runs whose answer is plain."""

from __future__ import annotations

import pytest

from controller.domain.bodies import RunReconciled
from controller.domain.outcome import EndKind
from controller.domain.provider_report import Figure, Finding, ProviderEvidence
from controller.domain.reconciliation import AttemptRecord
from controller.domain.usage import RequestState, Usage, ZeroBillProof
from controller.settle import reconcile
from tests.world.usage_reports import CARD, LANE, attempt, evidence, line, row

UNKNOWN, ZERO = RequestState.UNKNOWN, RequestState.ZERO_BILL
ONE = {"in": 1_000, "out": 100}  # the usage of one settled request


def found(provider: ProviderEvidence, *attempts: AttemptRecord) -> RunReconciled:
    return reconcile(provider, attempts, lane=LANE, card=CARD, scored=True)


def test_equal_sums_agree() -> None:
    answer = found(evidence(line(0, {"in": 2_000, "out": 200})), attempt(row(1), row(2)))
    assert (answer.finding, answer.outcome, answer.figure) == (Finding.AGREES, "success", Figure.EXACT)
    assert (answer.usd, answer.floor_usd, answer.problems) == ("0.006", "0.006", ())


def test_equal_sums_prove_that_unknown_requests_cost_nothing() -> None:
    rows = (row(1), row(2, UNKNOWN), row(3, UNKNOWN))
    answer = found(evidence(line(0, ONE)), attempt(*rows))
    assert (answer.finding, answer.outcome, answer.figure) == (Finding.AGREES, "success", Figure.EXACT)
    assert answer.usd == "0.003"
    proofs = {(each.sequence, each.proof, each.usd) for each in answer.resolved}
    assert proofs == {(2, ZeroBillProof.PROVIDER_USAGE_REPORT, "0"), (3, ZeroBillProof.PROVIDER_USAGE_REPORT, "0")}
    assert answer.accounts["att-1"].valid
    assert rows[1].state is UNKNOWN, "a row is never rewritten"


def test_what_the_provider_has_beyond_the_records_is_the_one_unknown_requests() -> None:
    answer = found(evidence(line(0, {"in": 1_500, "out": 140})), attempt(row(1), row(2, UNKNOWN)))
    assert (answer.finding, answer.outcome, answer.figure) == (Finding.ASSIGNED, "success", Figure.ESTIMATED)
    (assigned,) = answer.resolved
    # 500 in at $2 and 40 out at $10 per million: 0.001 + 0.0004 dollars.
    assert assigned.assigned == Usage(tokens={"in": 500, "out": 40})
    assert (assigned.sequence, assigned.proof, assigned.usd) == (2, None, "0.0014")
    assert (answer.usd, answer.accounts["att-1"].tokens) == ("0.0044", {"in": 1_500, "out": 140})


def test_two_unknown_requests_of_one_span_leave_the_run_invalid() -> None:
    answer = found(evidence(line(0, {"in": 1_500, "out": 140})), attempt(row(1), row(2, UNKNOWN), row(3, UNKNOWN)))
    assert (answer.finding, answer.outcome, answer.figure) == (Finding.PROVIDER_MORE, "invalid", Figure.FLOOR)
    assert (answer.usd, answer.floor_usd, answer.resolved) == (None, "0.003", ())
    assert "2 requests are of unknown cost" in answer.problems[0]


def test_two_unknown_requests_far_apart_are_told_apart() -> None:
    rows = (row(1, UNKNOWN, minute=0), row(2, UNKNOWN, minute=40))
    lines = (line(1, {"in": 500}), line(41, {"out": 7}))
    answer = found(evidence(*lines), attempt(*rows))
    assert answer.finding is Finding.ASSIGNED
    assert [(each.sequence, each.assigned) for each in answer.resolved] == [
        (1, Usage(tokens={"in": 500})),
        (2, Usage(tokens={"out": 7})),
    ]


def test_more_than_the_records_without_an_unknown_request_refutes_them() -> None:
    answer = found(evidence(line(0, {"in": 1_000, "out": 101})), attempt(row(1)))
    assert (answer.finding, answer.outcome, answer.usd) == (Finding.PROVIDER_MORE, "invalid", None)
    assert "1 more out" in answer.problems[0]
    assert not answer.accounts["att-1"].valid


def test_less_than_the_records_refutes_them_and_nothing_is_certain() -> None:
    answer = found(evidence(line(0, {"in": 999, "out": 100})), attempt(row(1)))
    assert (answer.finding, answer.outcome, answer.usd, answer.floor_usd) == (
        Finding.PROVIDER_LESS, "invalid", None, "0",
    )  # fmt: skip
    assert "1 fewer in" in answer.problems[0]


def test_one_class_more_and_another_less_is_less() -> None:
    answer = found(evidence(line(0, {"in": 999, "out": 140})), attempt(row(1), row(2, UNKNOWN)))
    assert answer.finding is Finding.PROVIDER_LESS
    assert answer.resolved == ()


def test_usage_where_the_records_have_no_request_refutes_them() -> None:
    answer = found(evidence(line(0, ONE), line(5, {"in": 1})), attempt(row(1)))
    assert answer.finding is Finding.PROVIDER_MORE
    assert answer.problems == ("2026-11-30T12:05Z: the provider has usage where the records have no request",)


def test_a_request_may_be_booked_a_minute_early_or_late_and_an_unknown_one_much_later() -> None:
    assert found(evidence(line(-1, ONE)), attempt(row(1))).finding is Finding.AGREES
    assert found(evidence(line(1, ONE)), attempt(row(1))).finding is Finding.AGREES
    late = found(evidence(line(15, {"in": 5})), attempt(row(1, UNKNOWN)))
    assert late.finding is Finding.ASSIGNED


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (evidence(), "no report names the provider key"),
        (evidence(line(0, ONE), dedicated=False), "served another run as well"),
        (evidence(line(0, ONE), covered=()), "no report has the minute 2026-11-30T11:59Z"),
        (evidence(line(0, ONE), covered=((-10, 5),)), "no report has the minute 2026-11-30T12:05Z"),
        (evidence(line(0, ONE), covered=((-10, 3), (4, 60))), "no report has the minute 2026-11-30T12:03Z"),
    ],
)
def test_silence_proves_nothing(provider: ProviderEvidence, why: str) -> None:
    answer = found(provider, attempt(row(1), row(2, UNKNOWN)))
    assert (answer.finding, answer.outcome, answer.figure) == (Finding.NOT_COMPARED, "invalid", Figure.FLOOR)
    assert (answer.usd, answer.floor_usd, answer.resolved) == (None, "0.003", ())
    assert why in answer.problems[0]


def test_a_run_whose_every_request_is_settled_stays_exact_without_a_report() -> None:
    answer = found(evidence(), attempt(row(1)))
    assert (answer.finding, answer.outcome, answer.usd, answer.figure) == (
        Finding.NOT_COMPARED, "success", "0.003", Figure.EXACT,
    )  # fmt: skip


def test_a_request_in_flight_is_not_compared() -> None:
    answer = found(evidence(line(0, ONE)), attempt(row(1), row(2, RequestState.SENT)))
    assert answer.finding is Finding.NOT_COMPARED
    assert answer.usd is None


@pytest.mark.parametrize("strange", [line(0, ONE, model="m-2"), line(0, ONE, tier="priority")])
def test_usage_off_the_lane_refutes_the_run(strange: object) -> None:
    answer = found(evidence(strange), attempt(row(1)))  # type: ignore[arg-type]
    assert (answer.finding, answer.outcome) == (Finding.OFF_LANE, "invalid")


def test_another_name_of_the_lanes_model_is_on_the_lane() -> None:
    answer = found(evidence(line(0, ONE, model="m-1-20261101")), attempt(row(1)))
    assert answer.finding is Finding.AGREES


def test_a_request_that_another_model_answered_is_never_resolved() -> None:
    strange = row(2, UNKNOWN).model_copy(update={"observed_model": "m-2"})
    answer = found(evidence(line(0, ONE)), attempt(row(1), strange))
    assert (answer.finding, answer.outcome, answer.resolved) == (Finding.OFF_LANE, "invalid", ())


def test_usage_that_has_no_one_price_is_not_assigned() -> None:
    untold = found(evidence(line(0, {"in": 500}, tier=None)), attempt(row(1, UNKNOWN)))
    assert (untold.finding, untold.resolved) == (Finding.PROVIDER_MORE, ())
    mixed = (line(0, {"in": 500}), line(0, {"in": 500}, geo="us"))
    assert found(evidence(*mixed), attempt(row(1, UNKNOWN))).finding is Finding.PROVIDER_MORE
    unpriced = found(evidence(line(0, {"w1h": 5})), attempt(row(1, UNKNOWN)))
    assert unpriced.finding is Finding.PROVIDER_MORE
    assert "no price for class 'w1h'" in unpriced.problems[0]


def test_the_providers_count_of_requests_is_held_against_ours() -> None:
    rows = (row(1), row(2, UNKNOWN))
    assert found(evidence(line(0, ONE, requests=1)), attempt(*rows)).finding is Finding.AGREES
    assert found(evidence(line(0, ONE, requests=2)), attempt(*rows)).finding is Finding.AGREES
    assert found(evidence(line(0, ONE, requests=0)), attempt(*rows)).finding is Finding.PROVIDER_LESS
    assert found(evidence(line(0, ONE, requests=3)), attempt(*rows)).finding is Finding.PROVIDER_MORE


def test_sums_run_over_all_attempts_of_the_run() -> None:
    first = attempt(row(1), number=1, end=EndKind.PROVIDER_ERROR)
    second = attempt(row(1, UNKNOWN, minute=2, attempt="att-2"), number=2)
    answer = found(evidence(line(0, ONE)), first, second)
    assert (answer.finding, answer.outcome, answer.usd) == (Finding.AGREES, "success", "0.003")
    assert [(each.attempt_id, each.sequence) for each in answer.resolved] == [("att-2", 1)]


def test_a_run_that_was_to_be_tried_again_stays_invalid_with_its_cost_known() -> None:
    answer = found(evidence(line(0, ONE)), attempt(row(1), row(2, UNKNOWN), end=EndKind.TIMEOUT))
    assert (answer.finding, answer.outcome, answer.usd) == (Finding.AGREES, "invalid", "0.003")
    assert "was to be tried again" in answer.problems[-1]
    limit = found(evidence(line(0, ONE)), attempt(row(1), row(2, UNKNOWN), end=EndKind.HARD_LIMIT))
    assert limit.outcome == "failure"


def test_a_run_without_a_score_gets_none() -> None:
    answer = reconcile(evidence(line(0, ONE)), [attempt(row(1))], lane=LANE, card=CARD, scored=False)
    assert answer.outcome is None
