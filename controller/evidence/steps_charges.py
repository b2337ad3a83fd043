"""Step 7: every charge is what the frozen prices make it, and every sum is the sum of its parts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction

from controller.domain import bodies
from controller.domain.money import sum_usd, usd_from_text, usd_to_text
from controller.domain.plan import Lane
from controller.domain.rate_card import RateCard, RateRow
from controller.domain.rating import price, rates_of
from controller.domain.usage import MeteredRequest, RequestState, Usage
from controller.errors import BundleRejected, UnpricedUsage
from controller.evidence.exhibits import Exhibits


def check_charges(exhibits: Exhibits) -> str:
    """(7) Price every request again; sum by attempt, by logical run and over the round."""
    rows: dict[str, list[MeteredRequest]] = defaultdict(list)
    for row in exhibits.ledger:
        rows[row.attempt_id].append(row)
    refusals = Counter(str(refusal.attempt_id) for refusal in exhibits.refusals if refusal.attempt_id is not None)
    trails = exhibits.trails
    for attempt_id in sorted(rows.keys() | refusals.keys()):
        if attempt_id not in trails.attempts:
            raise BundleRejected(f"the ledger has requests of {attempt_id}, which was never intended")
    for attempt_id, trail in trails.attempts.items():
        _check_rows(exhibits, trail.run, rows[attempt_id])
        for settled in trail.settled:
            found = _account(rows[attempt_id], refusals[attempt_id])
            claimed = settled.model_copy(update={"problems": ()})
            if claimed != found:
                raise BundleRejected(
                    f"{attempt_id} was settled at {settled.usd} USD for {settled.requests} requests, "
                    f"but the ledger gives {found.usd} USD for {found.requests}"
                )
    _check_run_sums(exhibits)
    _check_dataset_sums(exhibits)
    total = _check_totals(exhibits)
    known = f"{total} USD in all" if total is not None else "some of unknown cost, so the total is unknown"
    return f"{len(exhibits.ledger)} requests priced again, {known}"


def _check_rows(exhibits: Exhibits, run: str, rows: Sequence[MeteredRequest]) -> None:
    if run not in exhibits.scheduled:
        raise BundleRejected(f"logical run {run!r} was never scheduled")
    lane = exhibits.manifest.lane(exhibits.manifest.arm(exhibits.scheduled[run].arm).lane)
    card_rows = _lane_rows(exhibits.manifest.rate_card, lane)
    for position, row in enumerate(sorted(rows, key=lambda item: item.sequence), start=1):
        if row.sequence != position or row.logical_run_id != run:
            raise BundleRejected(f"{row.attempt_id}: request {position} is missing, or of another logical run")
        _check_row(row, lane, card_rows)


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


def _account(rows: Sequence[MeteredRequest], refusals: int) -> bodies.AttemptSettled:
    """What the ledger says of one attempt, in the form of the settlement."""
    final = (RequestState.SETTLED, RequestState.ZERO_BILL)
    valid = all(row.state in final for row in rows)
    tokens: Counter[str] = Counter()
    for row in rows:
        tokens.update({str(name): count for name, count in (row.usage.tokens if row.usage else {}).items()})
    total = sum((usd_from_text(row.usd) for row in rows if row.usd is not None), Fraction(0))
    return bodies.AttemptSettled(
        requests=sum(1 for row in rows if row.counts),
        refusals=refusals,
        tokens=dict(sorted(tokens.items())),
        usd=usd_to_text(total) if valid else None,
        valid=valid,
        problems=(),
    )


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


def _check_dataset_sums(exhibits: Exhibits) -> None:
    settled = {name: trail.settled[-1].usd for name, trail in exhibits.trails.attempts.items() if trail.settled}
    for row in exhibits.dataset:
        place = f"dataset: {row.task}.{row.arm}.r{row.replicate}"
        for attempt in row.attempts:
            if attempt.attempt_id not in settled or attempt.usd != settled[attempt.attempt_id]:
                raise BundleRejected(f"{place}: {attempt.attempt_id} has another cost than its settlement")
        if row.outcome != "missing" and row.usd != sum_usd(attempt.usd for attempt in row.attempts):
            raise BundleRejected(f"{place}: the cost is not the sum over its attempts")


def _check_totals(exhibits: Exhibits) -> str | None:
    """The settlement of the round against the attempts; returns the total."""
    trails = exhibits.trails
    accounts = [settled for trail in trails.attempts.values() for settled in trail.settled]
    if not trails.settlement:
        raise BundleRejected("the round was never settled")
    claimed = trails.settlement[-1]
    expected = (len(accounts), sum(a.requests for a in accounts), sum_usd(a.usd for a in accounts))
    invalid = sorted(run for run, t in trails.runs.items() if any(not s.valid for a in t.attempts for s in a.settled))
    if list(claimed.invalid_runs) != invalid:
        raise BundleRejected(f"the settlement calls {list(claimed.invalid_runs)} invalid, but the accounts {invalid}")
    if (claimed.attempts, claimed.requests, claimed.usd) != expected:
        raise BundleRejected(f"the round is settled at {claimed.usd} USD, but its attempts sum to {expected[2]}")
    return claimed.usd
