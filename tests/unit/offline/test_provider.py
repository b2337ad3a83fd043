"""What follows from a provider's usage report: both implementations find the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.domain.provider_report import ProviderEvidence
from controller.domain.reconciliation import AttemptRecord
from controller.domain.record import Record
from controller.domain.usage import RequestState
from controller.offline import claims as said
from controller.offline.history import Attempt, RunHistory
from controller.offline.ledger import Request
from controller.offline.log import Statement
from controller.offline.provider import check_run
from controller.offline.rates import Card, Lane
from controller.offline.refusal import Refused
from controller.offline.shapes import read
from controller.settle import reconcile
from tests.world.usage_reports import CARD, LANE, attempt, evidence, line, row

UNKNOWN, SENT = RequestState.UNKNOWN, RequestState.SENT
COUNTS = st.dictionaries(st.sampled_from(["in", "out", "w1h"]), st.integers(0, 2), max_size=3)


def as_json(record: Record) -> object:
    return json.loads(record.model_dump_json(by_alias=True))


def history(
    provider: ProviderEvidence, *attempts: AttemptRecord, scored: bool = True
) -> tuple[RunHistory, list[Request]]:
    """The run as the other implementation would have written it to the log."""
    reconciled = as_json(reconcile(provider, attempts, lane=LANE, card=CARD, scored=scored))
    run = RunHistory(reconciled=[read(said.RunReconciled, reconciled, "body")])
    rows: list[Request] = []
    for number, one in enumerate(attempts, start=1):
        found = Attempt(one.attempt_id, "t.a.r1", number, 1, 0)
        parts: list[tuple[type, Record]] = [(said.AttemptSettled, one.settled)]
        parts += [(said.AttemptClassified, one.classified)] if one.classified is not None else []
        for kind, body in parts:
            found.statements.append(Statement(0, 0, one.attempt_id, read(kind, as_json(body), "body")))
        run.attempts.append(found)
        rows += [read(Request, as_json(each), "row") for each in one.rows]
    if scored:
        run.scores.append(said.RunScored("invalid", len(attempts), len(attempts), None))
    return run, rows


def check(run: RunHistory, rows: list[Request]) -> None:
    check_run("t.a.r1", run, rows, read(Lane, as_json(LANE), "lane"), read(Card, as_json(CARD), "card"))


ONE = {"in": 1_000, "out": 100}
SCENES = {
    "agrees": (evidence(line(0, ONE)), (attempt(row(1), row(2, UNKNOWN)),)),
    "assigned": (evidence(line(0, {"in": 1_500, "out": 140})), (attempt(row(1), row(2, UNKNOWN)),)),
    "two unknown": (evidence(line(0, {"in": 1_500})), (attempt(row(1), row(2, UNKNOWN), row(3, UNKNOWN)),)),
    "far apart": (
        evidence(line(1, {"in": 500}), line(41, {"out": 7})),
        (attempt(row(1, UNKNOWN, minute=0), row(2, UNKNOWN, minute=40)),),
    ),
    "more": (evidence(line(0, {"in": 1_000, "out": 101})), (attempt(row(1)),)),
    "less": (evidence(line(0, {"in": 999, "out": 100})), (attempt(row(1)),)),
    "stray": (evidence(line(0, ONE), line(5, {"in": 1})), (attempt(row(1)),)),
    "silent": (evidence(), (attempt(row(1), row(2, UNKNOWN)),)),
    "not dedicated": (evidence(line(0, ONE), dedicated=False), (attempt(row(1)),)),
    "a minute is missing": (evidence(line(0, ONE), covered=((-10, 3), (4, 60))), (attempt(row(1), row(2, UNKNOWN)),)),
    "in flight": (evidence(line(0, ONE)), (attempt(row(1), row(2, SENT)),)),
    "another model": (evidence(line(0, ONE, model="m-2")), (attempt(row(1)),)),
    "another tier": (evidence(line(0, ONE, tier="priority")), (attempt(row(1)),)),
    "untold tier": (evidence(line(0, {"in": 500}, tier=None)), (attempt(row(1, UNKNOWN)),)),
    "no one place": (evidence(line(0, {"in": 5}), line(0, {"in": 5}, geo="us")), (attempt(row(1, UNKNOWN)),)),
    "unpriced": (evidence(line(0, {"w1h": 5})), (attempt(row(1, UNKNOWN)),)),
    "fewer requests": (evidence(line(0, ONE, requests=0)), (attempt(row(1), row(2, UNKNOWN)),)),
    "more requests": (evidence(line(0, ONE, requests=3)), (attempt(row(1), row(2, UNKNOWN)),)),
    "two attempts": (
        evidence(line(0, ONE)),
        (attempt(row(1), number=1), attempt(row(1, UNKNOWN, minute=2, attempt="att-2"), number=2)),
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_both_find_the_same(scene: str) -> None:
    provider, attempts = SCENES[scene]
    check(*history(provider, *attempts))
    check(*history(provider, *attempts, scored=False))


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.tuples(st.integers(-2, 20), COUNTS), max_size=4),
    states=st.lists(st.tuples(st.sampled_from(list(RequestState)), st.integers(0, 20)), min_size=1, max_size=4),
)
def test_both_find_the_same_of_any_small_run(
    lines: list[tuple[int, dict[str, int]]], states: list[tuple[RequestState, int]]
) -> None:
    rows = [
        row(number, state, minute=minute, tokens_in=1, tokens_out=0)
        for number, (state, minute) in enumerate(states, start=1)
    ]
    check(*history(evidence(*(line(minute, counts) for minute, counts in lines)), attempt(*rows)))


WRONG: list[Callable[[said.RunReconciled], said.RunReconciled]] = [
    lambda body: replace(body, finding="not-compared"),
    lambda body: replace(body, resolved=()),
    lambda body: replace(body, outcome="failure"),
    lambda body: replace(body, usd="0.0031", floor_usd="0.0031"),
    lambda body: replace(body, figure="exact"),
    lambda body: replace(body, accounts={}),
    lambda body: replace(body, resolved=(replace(body.resolved[0], usd="0"),)),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_another_reconciliation_is_refused(wrong: Callable[[said.RunReconciled], said.RunReconciled]) -> None:
    provider, attempts = SCENES["assigned"]
    run, rows = history(provider, *attempts)
    run.reconciled = [wrong(run.reconciled[0])]
    with pytest.raises(Refused, match="reconciled otherwise"):
        check(run, rows)
