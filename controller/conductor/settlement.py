"""Close a round's books: what is in flight ends, the provider's reports have their say, and the sums are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.conductor.history import RunHistory, run_histories
from controller.conductor.opening import in_flight, provider_key_name
from controller.conductor.status import round_status
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.plan import REHEARSAL_PROVIDER, LogicalRun, RoundManifest
from controller.domain.provider_report import Finding
from controller.domain.reconciliation import AttemptRecord
from controller.domain.statement import Statement, StatementKind
from controller.domain.usage import AttemptAccount
from controller.errors import InvalidInput
from controller.evidence.invalidation import invalidation
from controller.evidence.stops import OPERATOR, standing_stop
from controller.ports.clock import Clock
from controller.ports.journal import Journal
from controller.ports.ledger import Ledger
from controller.settle import ProviderReports, reconcile, settle_round, settled_usd

IN_FLIGHT_SECONDS_MAX: Final = 120.0  # as long as an attempt is given to drain; what is open then has lost its meter
POLL_SECONDS: Final = 0.5


@dataclass(frozen=True)
class UsageReports:
    """The provider's reports, and which of the provider's key ids belongs to which of our key names."""

    reports: ProviderReports
    key_ids: Mapping[str, str]


@dataclass(frozen=True)
class Books:
    """Everything that is settled, as it is or will be written; `accounts` are the meter's, by attempt."""

    manifest: RoundManifest
    histories: Mapping[str, RunHistory]
    accounts: Mapping[str, AttemptAccount]
    settled: bodies.RoundSettled
    closed: bodies.RoundClosed
    left_aside: tuple[int, int] = (0, 0)  # rows and keys of the reports that are not of this round


def draw_up(
    manifest: RoundManifest, journal: Journal, ledger: Ledger, clock: Clock, *, usage: UsageReports | None = None
) -> Books:
    """The books as they stand, with nothing written. For a closed round, as they were closed.

    Raises InvalidInput while attempts are in flight, while runs wait and nothing has stopped the round, while requests
    are in flight after two minutes, and for reports that differ from those the round was settled with.
    """
    statements = journal.statements()
    histories = run_histories(statements)
    _check_over(manifest, statements, histories)
    accounts = _drained(manifest, histories, ledger, clock)
    is_closed = journal.find(StatementKind.ROUND_SETTLED, manifest.round_id) is not None
    _check_reports(manifest, histories, usage, is_closed=is_closed)
    left_aside = (0, 0)
    if usage is not None:
        runs = [run for run in manifest.schedule if run.id in histories]
        histories |= _compared(manifest, runs, histories, accounts, usage, is_closed=is_closed)
        left_aside = usage.reports.left_aside(set(usage.key_ids.values()))
    settled = settle_round(
        {run: history.accounts for run, history in histories.items()},
        floors=[_floor(history, accounts) for history in histories.values()],
        estimated=any(h.reconciled and h.reconciled.finding is Finding.ASSIGNED for h in histories.values()),
    )
    outcomes = Counter(history.outcome for history in histories.values() if history.outcome is not None)
    closed = bodies.RoundClosed(
        success=outcomes["success"],
        failure=outcomes["failure"],
        invalid=outcomes["invalid"],
        missing=len(manifest.schedule) - outcomes.total(),
    )
    return Books(manifest, histories, accounts, settled, closed, left_aside)


def close(books: Books, journal: Journal, clock: Clock) -> None:
    """Write the books: what each run came to, why it is invalid if it is, the totals, and that nothing more is run.

    May be repeated after a crash.
    """
    for run, history in books.histories.items():
        if history.reconciled is not None:
            journal.append(StatementKind.RUN_RECONCILED, run, history.reconciled, at=clock.now())
    for run, history in books.histories.items():
        accounts = {a.attempt_id: account for a in history.attempts if (account := history.account(a)) is not None}
        body = invalidation(accounts, history.reconciled, history.outcome)
        if body is not None:
            journal.append(StatementKind.RUN_INVALIDATED, run, body, at=clock.now())
    round_id = books.manifest.round_id
    journal.append(StatementKind.ROUND_SETTLED, round_id, books.settled, at=clock.now())
    journal.append(StatementKind.ROUND_CLOSED, round_id, books.closed, at=clock.now())


def _check_over(manifest: RoundManifest, statements: Sequence[Statement], histories: Mapping[str, RunHistory]) -> None:
    waiting = [a.attempt_id for h in histories.values() for a in h.attempts if a.settled is None]
    found = round_status(manifest, statements)
    stop = standing_stop(statements)
    # A person may end a rehearsal at will. A measured round that he could end would be ended by who is winning.
    ended = stop is not None and (stop.rule != OPERATOR or manifest.kind == "rehearsal")
    if waiting or (found.scored < found.runs and not ended):
        raise InvalidInput(
            f"round {manifest.round_id} is not over: {found.scored} of {found.runs} logical runs are scored, "
            f"{len(waiting)} attempts are not settled",
            remedy="Run `fairtrial resume ROUND`. A rehearsal ends as it is after `fairtrial stop ROUND`; a measured "
            "round only after a predeclared event, which stops it by itself or by `fairtrial stop ROUND --event`.",
        )


def _drained(
    manifest: RoundManifest, histories: Mapping[str, RunHistory], ledger: Ledger, clock: Clock
) -> dict[str, AttemptAccount]:
    """The account of every attempt, once no request is in flight."""
    names = [attempt.attempt_id for history in histories.values() for attempt in history.attempts]
    accounts = {name: ledger.account(AttemptId(name)) for name in names}
    deadline = clock.monotonic_seconds() + IN_FLIGHT_SECONDS_MAX
    while open_ones := {name: count for name, account in accounts.items() if (count := in_flight(account))}:
        if clock.monotonic_seconds() >= deadline:
            raise InvalidInput(
                f"round {manifest.round_id}: {sum(open_ones.values())} requests are still in flight, the first of "
                f"{min(open_ones)}",
                remedy="Run `fairtrial resume ROUND`, which starts the meter again and ends them, then settle.",
            )
        clock.sleep(POLL_SECONDS)
        accounts |= {name: ledger.account(AttemptId(name)) for name in open_ones}
    return accounts


def _check_reports(
    manifest: RoundManifest, histories: Mapping[str, RunHistory], usage: UsageReports | None, *, is_closed: bool
) -> None:
    """Reports are for lanes of the round, and given from the beginning of its settlement to the end, or not at all."""
    compared = any(history.reconciled for history in histories.values())
    if usage is None:
        if compared and not is_closed:
            raise _other_reports(manifest.round_id, is_closed=False)
        return
    providers = {lane.provider for lane in manifest.lanes}
    strange = sorted(set(usage.reports.reports) - providers)
    if strange and REHEARSAL_PROVIDER not in providers:
        raise InvalidInput(
            f"no lane of round {manifest.round_id} is on {strange[0]}, whose report was given",
            remedy=f"Give reports of {', '.join(sorted(providers))} only.",
        )
    if is_closed and not compared:
        raise _other_reports(manifest.round_id, is_closed=True)


def _other_reports(round_id: str, *, is_closed: bool) -> InvalidInput:
    if is_closed:
        return InvalidInput(
            f"round {round_id} is closed: its books were not settled with these reports",
            remedy="A closed round is not opened again; `fairtrial settle ROUND` shows how it was settled.",
        )
    return InvalidInput(
        f"round {round_id}: its settlement was begun with other reports or other key ids",
        remedy="Give the same files with --usage-report, to finish what was begun.",
    )


def _compared(
    manifest: RoundManifest,
    runs: Sequence[LogicalRun],
    histories: Mapping[str, RunHistory],
    accounts: Mapping[str, AttemptAccount],
    usage: UsageReports,
    *,
    is_closed: bool,
) -> dict[str, RunHistory]:
    """Each run with what the reports say of it."""
    keys = {run.id: _keys(manifest, run, histories[run.id], accounts, usage.key_ids) for run in runs}
    holders = Counter(key for found in keys.values() for key in found)
    answers = {}
    for run in runs:
        history, lane = histories[run.id], manifest.lane(manifest.arm(run.arm).lane)
        dedicated = all(holders[key] == 1 for key in keys[run.id])
        provider = usage.reports.evidence(lane.provider, keys[run.id], dedicated=dedicated)
        if history.reconciled is not None and history.reconciled.provider != provider:
            raise _other_reports(manifest.round_id, is_closed=is_closed)
        body = reconcile(
            provider,
            [
                AttemptRecord(a.attempt_id, a.settled, a.classified, accounts[a.attempt_id].requests)
                for a in history.attempts
                if a.settled is not None
            ],
            lane=lane,
            card=manifest.rate_card,
            scored=history.scored is not None,
        )
        answers[run.id] = replace(history, reconciled=body)
    return answers


def _keys(
    manifest: RoundManifest,
    run: LogicalRun,
    history: RunHistory,
    accounts: Mapping[str, AttemptAccount],
    key_ids: Mapping[str, str],
) -> frozenset[str]:
    """The ids of the run's keys; none at all when one that it used has no id, since half a report refutes wrongly."""
    lane = manifest.lane(manifest.arm(run.arm).lane)
    names = [
        provider_key_name(lane, run, attempt.number)
        for attempt in history.attempts
        if accounts[attempt.attempt_id].requests
    ]
    return frozenset(key_ids[name] for name in names) if all(name in key_ids for name in names) else frozenset()


def _floor(history: RunHistory, accounts: Mapping[str, AttemptAccount]) -> str:
    if history.reconciled is not None:
        return history.reconciled.floor_usd
    return settled_usd([row for attempt in history.attempts for row in accounts[attempt.attempt_id].requests])
