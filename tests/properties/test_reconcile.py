"""Whatever a report says: nothing unknown becomes cheaper without proof, and no order of anything matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.domain.bodies import RunReconciled
from controller.domain.money import usd_from_text
from controller.domain.provider_report import MINUTE_MS, REFUTED, Figure, Finding, ProviderEvidence, ReportedUsage
from controller.domain.reconciliation import AttemptRecord
from controller.domain.usage import MeteredRequest, RequestState
from controller.settle import reconcile
from tests.world.usage_reports import CARD, LANE, NOON, attempt, evidence, line, row

STATES = (RequestState.SETTLED, RequestState.UNKNOWN, RequestState.ZERO_BILL)
MINUTES = st.integers(min_value=0, max_value=45)


@st.composite
def rows(draw: st.DrawFn) -> list[MeteredRequest]:
    states = draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=6))
    return [
        row(number, state, minute=draw(MINUTES), tokens_in=draw(st.integers(0, 3)), tokens_out=draw(st.integers(0, 3)))
        for number, state in enumerate(states, start=1)
    ]


def honest(found: list[MeteredRequest], extra: Mapping[int, int]) -> list[ReportedUsage]:
    """What a provider reports that billed every settled request, and `extra` input tokens for the unknown ones."""
    lines = []
    for each in found:
        minute = each.accepted_at // MINUTE_MS - NOON // MINUTE_MS
        if each.usage is not None:
            lines.append(line(minute, {str(name): count for name, count in each.usage.tokens.items()}))
        elif each.state is RequestState.UNKNOWN and extra.get(each.sequence):
            lines.append(line(minute, {"in": extra[each.sequence]}))
    return lines


def answer(provider: ProviderEvidence, attempts: list[AttemptRecord]) -> RunReconciled:
    return reconcile(provider, attempts, lane=LANE, card=CARD, scored=True)


@st.composite
def anything(draw: st.DrawFn) -> tuple[ProviderEvidence, list[MeteredRequest]]:
    """Rows and a report that may agree with them, or with nothing."""
    found = draw(rows())
    lines = honest(found, draw(st.dictionaries(st.integers(1, 6), st.integers(0, 4))))
    lines += [
        line(draw(MINUTES), {draw(st.sampled_from(("in", "out", "read"))): draw(st.integers(0, 3))})
        for _ in range(draw(st.integers(0, 2)))
    ]
    keep = draw(st.integers(0, len(lines)))
    covered = draw(st.sampled_from((((-10, 90),), ((-10, 20),), ((-10, 20), (21, 90)))))
    return evidence(*lines[:keep], covered=covered), found


@settings(deadline=None)
@given(anything())
def test_nothing_unknown_becomes_cheaper_without_proof(case: tuple[ProviderEvidence, list[MeteredRequest]]) -> None:
    provider, found = case
    result = answer(provider, [attempt(*found)])
    settled = sum(usd_from_text(each.usd) for each in found if each.usd is not None)
    unknown = {each.sequence for each in found if each.state is RequestState.UNKNOWN}
    resolved = {each.sequence for each in result.resolved}
    assert resolved <= unknown
    assert usd_from_text(result.floor_usd) <= settled or result.usd is not None
    if result.usd is None:
        assert result.figure is Figure.FLOOR
        assert result.outcome == "invalid"
        return
    assert resolved == unknown, "a total is there although a request is of unknown cost"
    assert usd_from_text(result.usd) >= settled, "the run became cheaper than what is settled"
    assert result.finding not in REFUTED
    assert (result.figure is Figure.ESTIMATED) == any(each.assigned is not None for each in result.resolved)


@settings(deadline=None)
@given(anything())
def test_what_is_resolved_adds_up_to_the_report(case: tuple[ProviderEvidence, list[MeteredRequest]]) -> None:
    provider, found = case
    result = answer(provider, [attempt(*found)])
    if result.finding not in (Finding.AGREES, Finding.ASSIGNED):
        return
    reported: Counter[str] = Counter()
    for each in provider.usage:
        reported.update({str(name): count for name, count in each.usage.tokens.items()})
    assert +reported == +Counter(result.accounts["att-1"].tokens)


@settings(deadline=None)
@given(anything(), st.randoms(use_true_random=False))
def test_no_order_matters(case: tuple[ProviderEvidence, list[MeteredRequest]], chance: Random) -> None:
    provider, found = case
    shuffled, lines, covered = list(found), list(provider.usage), list(provider.covered)
    for values in (shuffled, lines, covered):
        chance.shuffle(values)
    other = provider.model_copy(update={"usage": tuple(lines), "covered": tuple(covered)})
    first, second = answer(provider, [attempt(*found)]), answer(other, [attempt(*shuffled)])
    same = {"provider", "accounts"}  # hold the inputs in the order in which they were given
    assert first.model_dump(exclude=same) == second.model_dump(exclude=same)
    for left, right in zip(first.accounts.values(), second.accounts.values(), strict=True):
        assert left.model_dump(exclude={"problems"}) == right.model_dump(exclude={"problems"})


@settings(deadline=None)
@given(rows())
def test_an_honest_report_of_nothing_more_proves_all_unknown_ones_free(found: list[MeteredRequest]) -> None:
    lines = honest(found, {})
    result = answer(evidence(*lines, covered=((-10, 90),)), [attempt(*found)])
    if not lines:
        assert result.finding is Finding.NOT_COMPARED
        return
    assert result.finding is Finding.AGREES
    assert result.usd is not None


@settings(deadline=None)
@given(rows(), st.integers(0, 9))
def test_one_token_too_few_refutes_the_run(found: list[MeteredRequest], reported: int) -> None:
    one = row(9, minute=10, tokens_in=reported + 1)
    lines = [*honest(found, {}), line(10, {"in": reported, "out": 100})]
    result = answer(evidence(*lines, covered=((-10, 90),)), [attempt(*found, one)])
    assert (result.finding, result.usd) == (Finding.PROVIDER_LESS, None)
