"""Step 7: every charge is what the frozen prices make it, and every sum is the sum of its parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Dict, List, Sequence

from . import claims as said
from .dataset import RowForm
from .history import History, RunHistory
from .ledger import Refusal, Request, account_of, as_open, by_attempt, check_request, priced
from .money import total, usd_text
from .plan import Plan
from .provider import REFUTED, check_reconciliations
from .refusal import Refused

Rows = Dict[str, List[Request]]


def check_charges(
    plan: Plan, history: History, ledger: List[Request], refusals: List[Refusal], dataset: List[RowForm]
) -> str:
    """(7) Price every request again; sum by attempt, by logical run and over the round."""
    rows = by_attempt(ledger)
    refused: Dict[str, Dict[str, int]] = {}
    for refusal in refusals:
        if refusal.attempt_id is not None:
            reasons = refused.setdefault(refusal.attempt_id, {})
            reasons[refusal.reason] = reasons.get(refusal.reason, 0) + 1
    for stranger in sorted((rows.keys() | refused.keys()) - history.attempts.keys()):
        raise Refused(f"the ledger has requests of {stranger[:80]}, which was never intended")
    arms = {run.id: run.arm for run in plan.schedule}
    for attempt in history.attempts.values():
        lane = plan.lane_of(arms[attempt.run])
        own = rows.get(attempt.id, [])
        for position, row in enumerate(own, start=1):
            if row.sequence != position or row.logical_run_id != attempt.run:
                raise Refused(f"{attempt.id}: request {position} is missing, or of another logical run")
            check_request(row, lane, plan.rate_card)
        reasons = refused.get(attempt.id, {})
        if [told.reasons for told in attempt.every(said.RequestsRefused)] != ([reasons] if reasons else []):
            raise Refused(
                f"the log does not tell the {sum(reasons.values())} refusals of {attempt.id} by their reasons"
            )
        for settled in attempt.every(said.AttemptSettled):
            then = [as_open(row) if row.sequence in settled.open_requests else row for row in own]
            found = account_of(then, sum(reasons.values()), lane)
            if replace(settled, problems=()) != found:
                raise Refused(
                    f"{attempt.id} was settled at {settled.usd} USD for {settled.requests} requests, "
                    f"but the ledger gives {found.usd} USD for {found.requests}"
                )
    _check_run_sums(plan, history)
    compared = check_reconciliations(plan, history, rows)
    _check_invalidations(history)
    _check_dataset_sums(history, dataset)
    return f"{len(ledger)} requests priced again, {compared}{_check_round(history, rows)}"


def _check_run_sums(plan: Plan, history: History) -> None:
    """A run costs what all its attempts cost, and none was admitted beyond the frozen limits."""
    limits = plan.spend_limits
    for name, run in history.runs.items():
        accounts = [settled for attempt in run.attempts for settled in attempt.every(said.AttemptSettled)]
        for score in run.scores:
            cost = total(account.usd for account in accounts)
            if score.usd != cost:
                raise Refused(f"{name} is scored at {score.usd} USD, but its attempts sum to {cost}")
        counts = [account.requests for account in accounts]
        if max(counts, default=0) > limits.requests_per_attempt or sum(counts) > limits.requests_per_logical_run:
            raise Refused(f"{name} was given {counts} requests, beyond the frozen limits")


def _check_invalidations(history: History) -> None:
    """Each run that ended without a sound account says why, by attempt, and no other run does."""
    for name, run in history.runs.items():
        is_refuted = bool(run.reconciled) and run.reconciled[0].finding in REFUTED
        reasons = {attempt: _why(account, is_refuted) for attempt, account in run.accounts.items() if not account.valid}
        if not reasons and run.outcome == "invalid":
            reasons = {run.attempts[-1].id: "not-retried"}
        if [told.reasons for told in run.invalidated] != ([reasons] if reasons else []):
            raise Refused(f"{name}: the log does not tell why it is invalid, or tells it of a valid run")


def _why(account: said.AttemptSettled, is_refuted: bool) -> said.InvalidReason:
    if account.off_lane_models:
        return "model-off-lane"
    if account.open_requests:
        return "request-in-flight"
    return "usage-report-refutes" if is_refuted else "request-unknown"


def _check_dataset_sums(history: History, dataset: List[RowForm]) -> None:
    """The dataset names the costs that hold in the end."""
    settled = {name: account.usd for run in history.runs.values() for name, account in run.accounts.items()}
    for number, row in enumerate(dataset, start=1):
        for attempt in row.attempts:
            if attempt.attempt_id not in settled or attempt.usd != settled[attempt.attempt_id]:
                raise Refused(f"dataset.jsonl:{number}: an attempt has another cost than its settlement")
        if row.outcome != "missing" and row.usd != total(attempt.usd for attempt in row.attempts):
            raise Refused(f"dataset.jsonl:{number}: the cost is not the sum over its attempts")


def _check_round(history: History, rows: Rows) -> str:
    """The settlement of the round against the accounts that hold in the end."""
    if not history.settlements:
        raise Refused("the round was never settled")
    accounts = [account for run in history.runs.values() for account in run.accounts.values()]
    cost = total(account.usd for account in accounts)
    reconciled = [run.reconciled[0] for run in history.runs.values() if run.reconciled]
    is_assigned = any(each.finding == "assigned" for each in reconciled)
    expected = said.RoundSettled(
        attempts=len(accounts),
        requests=sum(account.requests for account in accounts),
        usd=cost,
        floor_usd=usd_text(sum((_floor(run, rows) for run in history.runs.values()), Fraction(0))),
        figure="floor" if cost is None else "estimated" if is_assigned else "exact",
        invalid_runs=tuple(
            sorted(name for name, run in history.runs.items() if not all(a.valid for a in run.accounts.values()))
        ),
    )
    claimed = history.settlements[-1]
    if claimed != expected:
        raise Refused(f"the round is settled at {_told(claimed)}, but its attempts sum to {_told(expected)}")
    if cost is None:
        return f"at least {claimed.floor_usd} USD, for some cost is unknown"
    return f"{cost} USD in all ({claimed.figure})"


def _floor(run: RunHistory, rows: Rows) -> Fraction:
    """What is certain of the cost of a logical run."""
    if run.reconciled:
        return Fraction(run.reconciled[0].floor_usd)
    own: Sequence[Request] = [row for attempt in run.attempts for row in rows.get(attempt.id, [])]
    return priced(own)


def _told(settled: said.RoundSettled) -> str:
    invalid = ", ".join(settled.invalid_runs) or "none"
    return (
        f"{settled.usd} USD for {settled.requests} requests of {settled.attempts} attempts "
        f"({settled.figure}, at least {settled.floor_usd}, invalid: {invalid[:200]})"
    )
