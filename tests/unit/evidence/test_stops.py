"""Predeclared stop rules: an operator's stop, an error share above 5 %, and a stop that stands once written."""

from __future__ import annotations

import pytest

from controller.conductor.rounds import stop_error
from controller.domain import bodies
from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.domain.stops import DECLARED, StopEvent
from controller.domain.terms import StopRules
from controller.errors import BundleRejected
from controller.evidence.log import next_statement
from controller.evidence.stops import StopWatch, check_stops, standing_stop
from tests.unit.schedule.test_rules import classified


def log(*entries: tuple[StatementKind, Record]) -> list[Statement]:
    statements: list[Statement] = []
    for kind, body in entries:
        previous = statements[-1] if statements else None
        statements.append(next_statement(previous, kind=kind, at=InstantMs(1), subject="s", body=body))
    return statements


def error_share(statements: list[Statement], rules: StopRules) -> bodies.RoundStopped | None:
    watch = StopWatch(rules)
    for statement in statements:
        watch.add(statement)
    return watch.error_share


def ends(count: int, end: EndKind) -> list[tuple[StatementKind, Record]]:
    return [(StatementKind.ATTEMPT_CLASSIFIED, classified(end)) for _ in range(count)]


def act(name: str) -> tuple[StatementKind, Record]:
    body = bodies.OperatorAct.model_validate({"act": name, "note": "n"})
    return StatementKind.OPERATOR_ACT, body


def test_a_quiet_log_stops_nothing() -> None:
    assert standing_stop([]) is None
    assert error_share([], StopRules()) is None


def test_more_than_five_percent_of_excused_attempts_stops_the_round() -> None:
    exactly = log(*ends(95, EndKind.NORMAL), *ends(5, EndKind.INFRASTRUCTURE))
    above = log(*ends(94, EndKind.NORMAL), *ends(3, EndKind.INFRASTRUCTURE), *ends(3, EndKind.PROVIDER_ERROR))
    assert error_share(exactly, StopRules()) is None
    assert error_share(above, StopRules()) is not None


def test_harness_failures_never_stop_a_round() -> None:
    ended = log(*ends(100, EndKind.HARNESS_CRASH), *ends(100, EndKind.TIMEOUT))
    assert error_share(ended, StopRules()) is None


def test_a_share_of_very_few_attempts_says_nothing() -> None:
    few = StopRules().attempts_before_share - 1
    assert error_share(log(*ends(few, EndKind.INFRASTRUCTURE)), StopRules()) is None


def test_an_operators_stop_stands_until_the_round_is_resumed() -> None:
    assert standing_stop(log(act("stop"))) is not None
    assert standing_stop(log(act("stop"), act("resume"))) is None
    assert standing_stop(log(act("stop"), act("resume"), act("stop"))) is not None


def test_a_written_stop_names_its_rule() -> None:
    body = bodies.RoundStopped(rule="authorization", detail="usd: 2 of 1")
    assert standing_stop(log((StatementKind.ROUND_STOPPED, body))) == body


def accounts(count: int, *, valid: bool) -> list[tuple[StatementKind, Record]]:
    body = bodies.AttemptSettled(
        requests=5, refusals=0, tokens={}, usd="0" if valid else None, valid=valid, problems=()
    )
    return [(StatementKind.ATTEMPT_SETTLED, body) for _ in range(count)]


def test_more_than_five_percent_of_accounts_that_did_not_settle_stop_the_round_with_the_numbers() -> None:
    exactly = watching(log(*accounts(95, valid=True), *accounts(5, valid=False)))
    above = watching(log(*accounts(94, valid=True), *accounts(6, valid=False)))
    few = watching(log(*accounts(39, valid=False)))
    assert (exactly.reconciliation, few.reconciliation) == (None, None)
    assert above.reconciliation == bodies.RoundStopped(
        rule="reconciliation", detail="the accounts of 6 of 100 attempts did not settle"
    )


@pytest.mark.parametrize("event", sorted(DECLARED))
def test_what_a_person_declares_stops_the_round_for_good(event: str) -> None:
    declared = bodies.OperatorAct(act="stop", note="seen in a mirror", event=event)
    statements = log((StatementKind.OPERATOR_ACT, declared), act("resume"))
    assert standing_stop(statements) == bodies.RoundStopped(rule=event, detail="seen in a mirror")
    check_stops(StopRules(), statements)
    with pytest.raises(BundleRejected, match="no predeclared event"):
        check_stops(StopRules(events=(StopEvent.ERROR_SHARE,)), statements)


def stopped(rule: str) -> tuple[StatementKind, Record]:
    return StatementKind.ROUND_STOPPED, bodies.RoundStopped(rule=rule, detail="d")


SHOWN: dict[str, list[tuple[StatementKind, Record]]] = {
    "error-share": ends(40, EndKind.INFRASTRUCTURE),
    "reconciliation": accounts(40, valid=False),
}


@pytest.mark.parametrize("rule", sorted(SHOWN))
def test_a_stop_needs_its_event_before_it(rule: str) -> None:
    check_stops(StopRules(), log(*SHOWN[rule], stopped(rule)))
    # What ended between the reading and the writing of the stop may have brought the share down again.
    diluting = [*ends(900, EndKind.NORMAL), *accounts(900, valid=True)]
    check_stops(StopRules(), log(*SHOWN[rule], *diluting, stopped(rule)))
    with pytest.raises(BundleRejected, match=f"statement 0 stops the round for '{rule}', which the log does not show"):
        check_stops(StopRules(), log(stopped(rule), *SHOWN[rule]))


def test_the_observed_model_is_shown_by_one_account() -> None:
    check_stops(StopRules(), log(settled(other=1), stopped("observed-model")))
    with pytest.raises(BundleRejected, match="does not show"):
        check_stops(StopRules(), log(settled(), stopped("observed-model")))


def settled(**off_lane_models: int) -> tuple[StatementKind, Record]:
    body = bodies.AttemptSettled(
        requests=5, refusals=0, tokens={}, usd=None, valid=False, problems=(), off_lane_models=off_lane_models
    )
    return StatementKind.ATTEMPT_SETTLED, body


def watching(statements: list[Statement], rules: StopRules | None = None) -> StopWatch:
    watch = StopWatch(rules or StopRules())
    for statement in statements:
        watch.add(statement)
    return watch


def test_one_answer_of_another_model_stops_the_round_with_the_numbers() -> None:
    assert watching(log(settled())).observed_model is None
    found = watching(log(settled(), settled(other=2), settled(other=1, third=1))).observed_model
    assert found is not None
    assert found.rule == "observed-model"
    assert found.detail == (
        "4 requests in 2 attempts were answered by a model off the lane: 'other' (3), 'third' (1); first in s"
    )


def test_another_rate_card_than_the_frozen_one_stops_the_round_with_both_digests() -> None:
    watch = watching([])
    assert watch.rate_card("sha256:aa", "sha256:aa") is None
    found = watch.rate_card("sha256:bb", "sha256:aa")
    assert found == bodies.RoundStopped(
        rule="rate-card", detail="the meter prices by sha256:bb, the manifest fixes sha256:aa"
    )


def test_only_a_predeclared_event_stops_a_round() -> None:
    rules = StopRules(events=(StopEvent.AUTHORIZATION,))
    watch = watching(log(settled(other=2), *accounts(50, valid=False), *ends(50, EndKind.INFRASTRUCTURE)), rules)
    assert (watch.observed_model, watch.error_share, watch.reconciliation) == (None, None, None)
    assert watch.rate_card("sha256:bb", "sha256:aa") is None


def test_what_the_operator_is_told_has_its_own_exit_code() -> None:
    def code(rule: str, *, finished: bool = False) -> int | None:
        error = stop_error(bodies.RoundStopped(rule=rule, detail="d"), round_id="r", finished=finished)
        return error.exit_code if error else None

    assert (code("observed-model"), code("rate-card"), code("authorization")) == (78, 79, 70)
    assert (code("observed-model", finished=True), code("authorization", finished=True)) == (78, None)
    assert (code("operator"), code("error-share")) == (None, None)
