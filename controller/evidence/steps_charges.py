"""Step 7: every charge is what the frozen prices make it, and every sum is the sum of its parts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction

from controller.domain import bodies
from controller.domain.money import sum_usd, usd_from_text, usd_to_text
from controller.domain.plan import Lane
from controller.domain.provider_report import Figure, Finding
from controller.domain.rate_card import RateCard, RateRow
from controller.domain.rating import price, rates_of
from controller.domain.usage import MeteredRequest, RequestState, Usage
from controller.errors import BundleRejected, UnpricedUsage
from controller.evidence.exhibits import Exhibits
from controller.evidence.invalidation import invalidation
from controller.evidence.steps_reconciliation import check_reconciliations
from controller.evidence.trails import RunTrail, Trails


def check_charges(exhibits: Exhibits) -> str:
    """(7) Price every request again; sum by attempt, by logical run and over the round."""
    rows: dict[str, list[MeteredRequest]] = defaultdict(list)
    for row in exhibits.ledger:
        rows[row.attempt_id].append(row)
    refusals: dict[str, Counter[str]] = defaultdict(Counter)
    for refusal in exhibits.refusals:
        if refusal.attempt_id is not None:
            refusals[refusal.attempt_id][refusal.reason] += 1
    trails = exhibits.trails
    for attempt_id in sorted(rows.keys() | refusals.keys()):
        if attempt_id not in trails.attempts:
            raise BundleRejected(f"the ledger has requests of {attempt_id}, which was never intended")
    for attempt_id, trail in trails.attempts.items():
        _check_rows(exhibits, trail.run, rows[attempt_id])
        refused = refusals[attempt_id]
        if trail.refused != ([bodies.RequestsRefused(reasons=dict(refused))] if refused else []):
            raise BundleRejected(
                f"the log does not tell the {refused.total()} refusals of {attempt_id} by their reasons"
            )
        lane = _lane(exhibits, trail.run)
        for settled in trail.settled:
            then = [_as_open(row) if row.sequence in settled.open_requests else row for row in rows[attempt_id]]
            found = _account(then, refused.total(), lane)
            claimed = settled.model_copy(update={"problems": ()})
            if claimed != found:
                raise BundleRejected(
                    f"{attempt_id} was settled at {settled.usd} USD for {settled.requests} requests, "
                    f"but the ledger gives {found.usd} USD for {found.requests}"
                )
    _check_run_sums(exhibits)
    reconciled = check_reconciliations(exhibits, rows)
    _check_invalidations(trails)
    _check_dataset_sums(exhibits)
    total = _check_totals(exhibits, rows)
    known = (
        f"{total.usd} USD in all ({total.figure.value})"
        if total.usd is not None
        else f"at least {total.floor_usd} USD, for some cost is unknown"
    )
    return f"{len(exhibits.ledger)} requests priced again, {reconciled}{known}"


def _check_rows(exhibits: Exhibits, run: str, rows: Sequence[MeteredRequest]) -> None:
    if run not in exhibits.scheduled:
        raise BundleRejected(f"logical run {run!r} was never scheduled")
    lane = _lane(exhibits, run)
    card_rows = _lane_rows(exhibits.manifest.rate_card, lane)
    for position, row in enumerate(sorted(rows, key=lambda item: item.sequence), start=1):
        if row.sequence != position or row.logical_run_id != run:
            raise BundleRejected(f"{row.attempt_id}: request {position} is missing, or of another logical run")
        _check_row(row, lane, card_rows)


def _lane(exhibits: Exhibits, run: str) -> Lane:
    return exhibits.manifest.lane(exhibits.manifest.arm(exhibits.scheduled[run].arm).lane)


def _lane_rows(card: RateCard, lane: Lane) -> tuple[RateRow, ...]:
    """The lane's rows of the card. They differ in speed and place of inference, which the ledger does not record."""
    wanted = (lane.provider, lane.model, lane.rate_tier)
    return tuple(row for row in card.rows if (row.provider, row.model, row.tier) == wanted)


def _prices(usage: Usage, rows: Sequence[RateRow]) -> Iterator[str]:
    """What the request may have cost, by each row that prices all its classes and each surcharge it declares."""
    for rate in (rate for row in rows for rate in rates_of(row)):
        with suppress(UnpricedUsage):
            yield usd_to_text(price(usage, rate))


def _check_row(row: MeteredRequest, lane: Lane, card_rows: Sequence[RateRow]) -> None:
    place = f"{row.attempt_id} request {row.sequence}"
    if row.model != lane.model:
        raise BundleRejected(f"{place} asked for model {row.model!r}, off its lane")
    match row.state:
        case RequestState.SETTLED:
            if row.usage is None or row.usd is None:
                raise BundleRejected(f"{place} is settled without usage or price")
            if row.observed_model not in (None, *lane.observed_models):
                raise BundleRejected(f"{place} was answered by {row.observed_model!r}, off its lane")
            exact = sorted(set(_prices(row.usage, card_rows)))
            if row.usd not in exact:
                given = " or ".join(exact) or "no price"
                raise BundleRejected(f"{place} is charged {row.usd} USD, but the rate card gives {given}")
        case RequestState.ZERO_BILL:
            if row.zero_bill_proof is None or row.usd not in (None, "0"):
                raise BundleRejected(f"{place} is called free without a proof")
        case RequestState.ACCEPTED | RequestState.SENT | RequestState.UNKNOWN:
            if row.usd is not None:
                raise BundleRejected(f"{place} has a price, though what it cost is unknown")


def _account(rows: Sequence[MeteredRequest], refusals: int, lane: Lane) -> bodies.AttemptSettled:
    """What the ledger says of one attempt, in the form of the settlement."""
    final = (RequestState.SETTLED, RequestState.ZERO_BILL)
    valid = all(row.state in final for row in rows)
    tokens: Counter[str] = Counter()
    for row in rows:
        tokens.update({str(name): count for name, count in (row.usage.tokens if row.usage else {}).items()})
    strange = Counter(row.observed_model for row in rows if row.observed_model not in (None, *lane.observed_models))
    return bodies.AttemptSettled(
        requests=sum(1 for row in rows if row.counts),
        refusals=refusals,
        tokens=dict(sorted(tokens.items())),
        usd=usd_to_text(_priced(rows)) if valid else None,
        valid=valid,
        problems=(),
        open_requests=tuple(sorted(row.sequence for row in rows if row.state.is_open)),
        off_lane_models={str(model): strange[model] for model in sorted(strange, key=str)},
    )


def _as_open(row: MeteredRequest) -> MeteredRequest:
    """The row before its end. It may have ended since, but the account was written without that."""
    before = {"state": RequestState.SENT, "usage": None, "usd": None, "zero_bill_proof": None, "observed_model": None}
    return row.model_copy(update=before)


def _priced(rows: Iterable[MeteredRequest]) -> Fraction:
    return sum((usd_from_text(row.usd) for row in rows if row.usd is not None), Fraction(0))


def _check_run_sums(exhibits: Exhibits) -> None:
    """The cost of a logical run is that of all its attempts; none was admitted beyond the frozen request limits."""
    spend = exhibits.manifest.spend_limits
    for run_id, run in exhibits.trails.runs.items():
        accounts = [settled for trail in run.attempts for settled in trail.settled]
        for score in run.scored:
            total = sum_usd(account.usd for account in accounts)
            if score.usd != total:
                raise BundleRejected(f"{run_id} is scored at {score.usd} USD, but its attempts sum to {total}")
        counts = [account.requests for account in accounts]
        if max(counts, default=0) > spend.requests_per_attempt or sum(counts) > spend.requests_per_logical_run:
            raise BundleRejected(f"{run_id} was given {counts} requests, beyond the frozen limits")


def _check_invalidations(trails: Trails) -> None:
    """Each run that ended without a sound account says why, by attempt, and no other run does."""
    for run_id, run in trails.runs.items():
        expected = invalidation(run.accounts(), run.reconciled[0] if run.reconciled else None, run.outcome)
        if run.invalidated != ([expected] if expected else []):
            raise BundleRejected(f"{run_id}: the log does not tell why it is invalid, or tells it of a valid run")


def _check_dataset_sums(exhibits: Exhibits) -> None:
    runs = exhibits.trails.runs.values()
    settled = {name: account.usd for run in runs for name, account in run.accounts().items()}
    for row in exhibits.dataset:
        place = f"dataset: {row.task}.{row.arm}.r{row.replicate}"
        for attempt in row.attempts:
            if attempt.attempt_id not in settled or attempt.usd != settled[attempt.attempt_id]:
                raise BundleRejected(f"{place}: {attempt.attempt_id} has another cost than its settlement")
        if row.outcome != "missing" and row.usd != sum_usd(attempt.usd for attempt in row.attempts):
            raise BundleRejected(f"{place}: the cost is not the sum over its attempts")


def _check_totals(exhibits: Exhibits, rows: Mapping[str, Sequence[MeteredRequest]]) -> bodies.RoundSettled:
    """The settlement of the round against the accounts that hold in the end; returns it."""
    trails = exhibits.trails
    if not trails.settlement:
        raise BundleRejected("the round was never settled")
    claimed = trails.settlement[-1]
    by_run = {name: list(run.accounts().values()) for name, run in trails.runs.items()}
    accounts = [account for found in by_run.values() for account in found]
    invalid = sorted(run for run, found in by_run.items() if not all(account.valid for account in found))
    if list(claimed.invalid_runs) != invalid:
        raise BundleRejected(f"the settlement calls {list(claimed.invalid_runs)} invalid, but the accounts {invalid}")
    total = sum_usd(account.usd for account in accounts)
    expected = bodies.RoundSettled(
        attempts=len(accounts),
        requests=sum(account.requests for account in accounts),
        usd=total,
        floor_usd=usd_to_text(sum((_floor(run, rows) for run in trails.runs.values()), Fraction(0))),
        figure=_figure(trails, total),
        invalid_runs=tuple(invalid),
    )
    if claimed != expected:
        raise BundleRejected(f"the round is settled at {_told(claimed)}, but its attempts sum to {_told(expected)}")
    return claimed


def _told(settled: bodies.RoundSettled) -> str:
    return f"{settled.usd} USD for {settled.requests} requests ({settled.figure.value}, at least {settled.floor_usd})"


def _floor(run: RunTrail, rows: Mapping[str, Sequence[MeteredRequest]]) -> Fraction:
    """What is certain of the cost of one logical run."""
    if run.reconciled:
        return usd_from_text(run.reconciled[0].floor_usd)
    return sum((_priced(rows.get(trail.attempt_id, ())) for trail in run.attempts), Fraction(0))


def _figure(trails: Trails, total: str | None) -> Figure:
    if total is None:
        return Figure.FLOOR
    assigned = any(body.finding is Finding.ASSIGNED for run in trails.runs.values() for body in run.reconciled)
    return Figure.ESTIMATED if assigned else Figure.EXACT
