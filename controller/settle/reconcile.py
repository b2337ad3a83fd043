"""The records of one logical run against what the provider says of its key. Pure, and any order gives the same answer.

Reports count by the minute and do not say whether a request is booked when it starts or when it ends. So requests whose
times lie close together form one span, and the sums of a span are compared. Per span, class by class:

- equal sums prove that what is unknown in it cost nothing;
- usage beyond the records is that of the one request of unknown cost, if there is exactly one;
- anything else refutes the run's account, and the run is invalid.

A minute the report does not have proves nothing, and neither does a key that it never names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from controller.domain.bodies import AttemptSettled, RunReconciled
from controller.domain.ids import AttemptId
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.money import sum_usd, usd_to_text
from controller.domain.outcome import RETRYABLE, EndKind
from controller.domain.plan import Lane
from controller.domain.provider_report import (
    REFUTED,
    Finding,
    ProviderEvidence,
    ReportedUsage,
    RequestResolved,
)
from controller.domain.rate_card import RateCard
from controller.domain.rating import RateKey, find_rate, price
from controller.domain.reconciliation import AttemptRecord
from controller.domain.usage import AttemptAccount, MeteredRequest, RequestState, Usage, ZeroBillProof
from controller.errors import UnpricedUsage
from controller.settle.rules import figure, settle_attempt, settled_usd
from controller.settle.spans import UNIT, Span, classes, counts_something, distribute, gap, minute_text, spans_of

SEVERITY: Final = (
    Finding.AGREES,
    Finding.ASSIGNED,
    Finding.NOT_COMPARED,
    Finding.PROVIDER_MORE,
    Finding.PROVIDER_LESS,
    Finding.OFF_LANE,
)


@dataclass(frozen=True)
class _Answer:
    finding: Finding
    problems: tuple[str, ...] = ()
    resolved: tuple[RequestResolved, ...] = ()


def reconcile(
    provider: ProviderEvidence,
    attempts: Sequence[AttemptRecord],
    *,
    lane: Lane,
    card: RateCard,
    scored: bool,
) -> RunReconciled:
    """The whole of one logical run. `attempts` are in order of their numbers; nothing of them is changed."""
    rows = [row for attempt in attempts for row in attempt.rows]
    answer = _compare(provider, rows, lane, card)
    refuted = answer.finding in REFUTED
    resolutions = {(each.attempt_id, each.sequence): each for each in answer.resolved}
    accounts = {
        attempt.attempt_id: _account(attempt, resolutions, answer if refuted else None, lane) for attempt in attempts
    }
    usd = sum_usd(account.usd for account in accounts.values())
    floor = "0" if answer.finding is Finding.PROVIDER_LESS else settled_usd(rows)
    outcome = _outcome(attempts, accounts) if scored else None
    problems = answer.problems
    if outcome == "invalid" and usd is not None:
        problems += ("the cost is known now, but the run was to be tried again and was not",)
    return RunReconciled(
        provider=provider,
        finding=answer.finding,
        problems=problems,
        resolved=answer.resolved,
        accounts=accounts,
        outcome=outcome,
        usd=usd,
        floor_usd=floor if usd is None else usd,
        figure=figure(usd, estimated=answer.finding is Finding.ASSIGNED),
    )


def _compare(provider: ProviderEvidence, rows: Sequence[MeteredRequest], lane: Lane, card: RateCard) -> _Answer:
    refusal = _not_comparable(provider, rows)
    if refusal is not None:
        return _Answer(Finding.NOT_COMPARED, (refusal,))
    spans = spans_of(rows)
    strays = distribute(provider.usage, spans)
    gaps = [gap(span, provider) for span in spans]
    answers = [
        _answer_of_span(span, lane, card) if missing is None else _Answer(Finding.NOT_COMPARED, (missing,))
        for span, missing in zip(spans, gaps, strict=True)
    ]
    answers += [_stray(line) for line in strays if counts_something(line)]
    answers.append(_lane_answer(provider.usage, rows, lane))
    if not any(gaps):
        answers.append(_request_answer(provider.usage, rows))
    finding = max((answer.finding for answer in answers), key=SEVERITY.index)
    problems = tuple(sorted({problem for answer in answers for problem in answer.problems}))
    if finding in (Finding.AGREES, Finding.ASSIGNED):
        resolved = sorted(
            (each for answer in answers for each in answer.resolved), key=lambda each: (each.attempt_id, each.sequence)
        )
        return _Answer(finding, problems, tuple(resolved))
    return _Answer(finding, problems)


def _not_comparable(provider: ProviderEvidence, rows: Sequence[MeteredRequest]) -> str | None:
    if not provider.dedicated:
        return "the provider key of this run served another run as well"
    if not provider.usage:
        return "no report names the provider key of this run"
    still_open = [row for row in rows if row.state.is_open]
    return f"{len(still_open)} requests are still in flight" if still_open else None


def _answer_of_span(span: Span, lane: Lane, card: RateCard) -> _Answer:
    excess = classes(line.usage for line in span.lines)
    excess.subtract(classes(row.usage for row in span.rows if row.state is RequestState.SETTLED and row.usage))
    place = f"{minute_text(span.start)} to {minute_text(span.end)}"
    short = {name: count for name, count in excess.items() if count < 0}
    over = {name: count for name, count in excess.items() if count > 0}
    if short:
        return _Answer(Finding.PROVIDER_LESS, (f"{place}: the provider has {_amounts(short)} than the records",))
    unknown = [row for row in span.rows if row.state is RequestState.UNKNOWN]
    if not over:
        return _Answer(Finding.AGREES, resolved=tuple(_proven(row) for row in unknown))
    beyond = f"{place}: the provider has {_amounts(over)} than the records"
    if len(unknown) != 1:
        return _Answer(Finding.PROVIDER_MORE, (f"{beyond}, and {len(unknown)} requests are of unknown cost",))
    try:
        return _Answer(Finding.ASSIGNED, resolved=(_assigned(unknown[0], over, span.lines, lane, card),))
    except UnpricedUsage as error:
        return _Answer(Finding.PROVIDER_MORE, (f"{beyond}: {error}",))


def _proven(row: MeteredRequest) -> RequestResolved:
    return RequestResolved(
        attempt_id=row.attempt_id,
        sequence=row.sequence,
        proof=ZeroBillProof.PROVIDER_USAGE_REPORT,
        assigned=None,
        usd="0",
    )


def _assigned(
    row: MeteredRequest, over: Mapping[str, int], lines: Sequence[ReportedUsage], lane: Lane, card: RateCard
) -> RequestResolved:
    """The excess as the usage of this request, priced by the card. Raises UnpricedUsage."""
    conditions = {(line.tier, line.speed, line.geo) for line in lines if counts_something(line)}
    if len(conditions) != 1:
        raise UnpricedUsage(f"it was served under {len(conditions)} conditions, so it has no one price")
    tier, speed, geo = conditions.pop()
    if tier is None:
        raise UnpricedUsage("the report does not tell the service tier, so it has no price")
    usage = Usage.model_validate(
        {
            "tokens": {name: over[name] for name in sorted(over) if not name.startswith(UNIT)},
            "units": {name.removeprefix(UNIT): over[name] for name in sorted(over) if name.startswith(UNIT)},
        }
    )
    key = RateKey(provider=lane.provider, model=lane.model, tier=tier, speed=speed or "standard", geo=geo or "global")
    usd = usd_to_text(price(usage, find_rate(card, key)))
    return RequestResolved(attempt_id=row.attempt_id, sequence=row.sequence, proof=None, assigned=usage, usd=usd)


def _stray(line: ReportedUsage) -> _Answer:
    problem = f"{minute_text(line.minute)}: the provider has usage where the records have no request"
    return _Answer(Finding.PROVIDER_MORE, (problem,))


def _lane_answer(lines: Sequence[ReportedUsage], rows: Sequence[MeteredRequest], lane: Lane) -> _Answer:
    """Usage of another model or tier than the lane's, as the provider reports it or as a response said."""
    names = {lane.model, *lane.observed_models}
    problems = [
        f"the provider reports usage of {line.model} (tier {line.tier or 'not told'})"
        for line in lines
        if counts_something(line) and (line.model not in names or line.tier not in (None, lane.rate_tier))
    ]
    problems += [
        f"request {row.sequence} of {row.attempt_id} was answered by {row.observed_model}"
        for row in rows
        if row.observed_model is not None and row.observed_model not in lane.observed_models
    ]
    return _Answer(Finding.OFF_LANE, tuple(problems)) if problems else _Answer(Finding.AGREES)


def _request_answer(lines: Sequence[ReportedUsage], rows: Sequence[MeteredRequest]) -> _Answer:
    """How many requests the provider counts, where it does: at least the settled ones, and none that we never sent."""
    if any(line.requests is None for line in lines):
        return _Answer(Finding.AGREES)
    counted = sum(line.requests or 0 for line in lines)
    settled = sum(row.state is RequestState.SETTLED and row.counts for row in rows)
    sent = sum(row.zero_bill_proof is not ZeroBillProof.NEVER_SENT for row in rows)
    if counted < settled:
        problem = f"the provider counts {counted} requests, the records have {settled} settled ones"
        return _Answer(Finding.PROVIDER_LESS, (problem,))
    if counted > sent:
        return _Answer(Finding.PROVIDER_MORE, (f"the provider counts {counted} requests, of which {sent} were sent",))
    return _Answer(Finding.AGREES)


def _amounts(excess: Mapping[str, int]) -> str:
    return ", ".join(
        f"{abs(count)} {'more' if count > 0 else 'fewer'} {name.removeprefix(UNIT)}"
        for name, count in sorted(excess.items())
    )


def _account(
    attempt: AttemptRecord,
    resolutions: Mapping[tuple[str, int], RequestResolved],
    refuted: _Answer | None,
    lane: Lane,
) -> AttemptSettled:
    """The attempt's account with its unknown requests resolved; without a cost when the report refutes it."""
    rows = tuple(_resolved(row, resolutions.get((row.attempt_id, row.sequence))) for row in attempt.rows)
    account = AttemptAccount(attempt_id=AttemptId(attempt.attempt_id), requests=rows, refusals=(), open=False)
    found = settle_attempt(account, observed_models=lane.observed_models)
    changes: dict[str, object] = {"refusals": attempt.settled.refusals}
    if refuted is not None:
        problem = f"the provider's report refutes the account of the run ({refuted.finding.value})"
        changes |= {"usd": None, "valid": False, "problems": (*found.problems, problem)}
    return found.model_copy(update=changes)


def _resolved(row: MeteredRequest, resolution: RequestResolved | None) -> MeteredRequest:
    """The row as it counts, not as it is written."""
    if resolution is None:
        return row
    if resolution.assigned is None:
        changes: dict[str, object] = {"state": RequestState.ZERO_BILL, "usage": None}
    else:
        changes = {"state": RequestState.SETTLED, "usage": resolution.assigned}
    return row.model_copy(update={**changes, "usd": resolution.usd, "zero_bill_proof": resolution.proof})


def _outcome(
    attempts: Sequence[AttemptRecord], accounts: Mapping[str, AttemptSettled]
) -> Literal["success", "failure", "invalid"]:
    """As the run would have been scored, had its cost been known at once; what it was not given stays invalid."""
    last = attempts[-1].classified
    if last is None or not all(account.valid for account in accounts.values()):
        return "invalid"
    if last.end is EndKind.NORMAL and last.verified:
        return "success"
    if last.end in RETRYABLE and last.number < ATTEMPTS_PER_LOGICAL_RUN_MAX:
        return "invalid"
    return "failure"
