"""The dataset: its form, and step 9's first half, which builds it anew from the statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple

from . import claims as said
from .canonical import dumps
from .history import Attempt, History, RunHistory
from .money import total
from .plan import Plan, Run
from .shapes import Digest, Positive, Usd, Whole

Row = Dict[str, Any]
Name = Annotated[str, re.compile(r"(?s).+")]
Currency = Annotated[str, re.compile(r"[A-Z]{3}")]


@dataclass(frozen=True)
class AttemptForm:
    """One attempt of a row; docs/dataset.md says what every field means."""

    attempt_id: Name
    number: Positive
    end: said.End
    reason: str
    wall_ms: Whole
    usd: Optional[Usd]
    requests: Whole
    turns: Optional[int]
    tool_calls: Optional[int]
    tokens: Dict[str, int]
    self_reported_usd: Optional[Usd]
    verified: Optional[bool]
    would_have_passed: bool


@dataclass(frozen=True)
class ChargeForm:
    """A charge beside the model's."""

    id: Name
    kind: Literal["tool", "compute", "human_verification", "allocated_shared"]
    amount: Optional[Usd]
    currency: Currency


@dataclass(frozen=True)
class ProofsForm:
    """What was proven beside the verdict."""

    observed_model: Optional[bool]
    receipt: Optional[bool]


@dataclass(frozen=True)
class RowForm:
    """One line."""

    round_id: Name
    manifest_digest: Digest
    kind: Literal["rehearsal", "measured"]
    task: Name
    cluster: Name
    stratum: Name
    visibility: Literal["public", "sealed", "holdout"]
    arm: Name
    model: Name
    replicate: Positive
    outcome: Literal["success", "failure", "invalid", "missing"]
    usd: Optional[Usd]
    wall_ms: Optional[int]
    attempts: Tuple[AttemptForm, ...]
    scored_attempt: Optional[int]
    schema_version: Literal["fairtrial.dataset/1", "fairtrial.dataset/2"] = "fairtrial.dataset/1"
    currency: Currency = "USD"
    figure: Optional[said.Figure] = None
    latency_ms: Optional[Whole] = None
    charges: Tuple[ChargeForm, ...] = ()
    proofs: Optional[ProofsForm] = None
    challenge: Optional[Literal["tamper", "incomplete", "substitution", "crash"]] = None


def dataset_rows(plan: Plan, manifest_digest: str, history: History) -> List[Row]:
    """One row per scheduled logical run, in the order of the schedule."""
    return [_row(plan, manifest_digest, run, history.runs.get(run.id, RunHistory())) for run in plan.schedule]


def dataset_bytes(rows: List[Row]) -> bytes:
    """The rows as JSON lines."""
    return b"".join(dumps(row) + b"\n" for row in rows)


def _row(plan: Plan, manifest_digest: str, run: Run, history: RunHistory) -> Row:
    task = next(task for task in plan.tasks if task.id == run.task)
    attempts = [
        _attempt(attempt, classified, history.account(attempt))
        for attempt in history.attempts
        for classified in attempt.every(said.AttemptClassified)
    ]
    score = history.scores[-1] if history.scores else None
    usd = total(attempt["usd"] for attempt in attempts) if score else None
    figure = None if usd is None else history.reconciled[-1].figure if history.reconciled else "exact"
    return {
        "schema_version": "fairtrial.dataset/1",
        "round_id": plan.round_id,
        "manifest_digest": manifest_digest,
        "kind": plan.kind,
        "task": run.task,
        "cluster": task.cluster,
        "stratum": task.stratum,
        "visibility": task.visibility,
        "arm": run.arm,
        "model": plan.lane_of(run.arm).model,
        "replicate": run.replicate,
        "outcome": history.outcome or "missing",
        "currency": "USD",
        "usd": usd,
        "figure": figure,
        "wall_ms": sum(attempt["wall_ms"] for attempt in attempts) if score else None,
        "attempts": attempts,
        "scored_attempt": score.scored_attempt if score else None,
        **({} if plan.protocol == "harness-round" else _version_2(history, is_scored=score is not None)),
    }


def _version_2(history: RunHistory, *, is_scored: bool) -> Row:
    """What rows of the other protocols hold beside; what is unknown is left out."""
    fields: Row = {"schema_version": "fairtrial.dataset/2"}
    if not is_scored:
        return fields
    ended_at = history.attempts[-1].ended_at
    results = [result for attempt in history.attempts for result in attempt.every(said.ResultAcknowledged)]
    elapsed = None if ended_at is None else ended_at - history.attempts[0].intended_at
    if elapsed is not None and elapsed >= sum(result.wall_ms for result in results):
        fields["latency_ms"] = elapsed
    accounts = list(history.accounts.values())
    observed: Optional[bool] = None
    if any(account.off_lane_models for account in accounts):
        observed = False
    elif any(account.tokens for account in accounts) and all(account.valid for account in accounts):
        observed = True
    isolation = history.attempts[-1].the(said.IsolationChecked)
    has_receipt = isolation is not None and isolation.receipt_digest is not None
    return {
        **fields,
        "proofs": {
            "observed_model": observed,
            "receipt": not isolation.mismatches if isolation is not None and has_receipt else None,
        },
    }


def _attempt(attempt: Attempt, classified: said.AttemptClassified, account: Optional[said.AttemptSettled]) -> Row:
    result = attempt.the(said.ResultAcknowledged)
    return {
        "attempt_id": attempt.id,
        "number": attempt.number,
        "end": classified.end,
        "reason": classified.reason,
        "wall_ms": result.wall_ms if result else 0,
        "usd": account.usd if account else None,
        "requests": account.requests if account else 0,
        "turns": account.requests if account else None,
        "tool_calls": None,
        "tokens": dict(account.tokens) if account else {},
        "self_reported_usd": result.self_reported_usd if result else None,
        "verified": classified.verified,
        "would_have_passed": classified.would_have_passed,
    }
