"""The frozen table of a round, rebuilt from its statements: a pure function, so that a checker gets the same bytes.

Rows of harness-round have the form of version 1. The other protocols also read how long a run took to be judged, and
what was proven of it, so their rows have that of version 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from controller.conductor.history import AttemptHistory, RunHistory, run_histories
from controller.domain.bodies import AttemptSettled
from controller.domain.dataset import AttemptRow, LogicalRunRow, Proofs
from controller.domain.money import sum_usd
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.provider_report import Figure
from controller.domain.statement import Statement

VERSION_1_PROTOCOL: Final = "harness-round"


def dataset_rows(
    manifest: RoundManifest, manifest_digest: str, statements: Sequence[Statement]
) -> tuple[LogicalRunRow, ...]:
    """One row per predeclared logical run, in schedule order; one that never happened has the outcome `missing`."""
    histories = run_histories(statements)
    return tuple(_row(manifest, manifest_digest, run, histories.get(run.id)) for run in manifest.schedule)


def _row(manifest: RoundManifest, digest: str, run: LogicalRun, history: RunHistory | None) -> LogicalRunRow:
    task, arm = manifest.task(run.task), manifest.arm(run.arm)
    attempts = _attempt_rows(history) if history else ()
    scored = history.scored if history else None
    outcome = history.outcome if history else None
    usd = sum_usd(a.usd for a in attempts) if scored else None
    return LogicalRunRow(
        round_id=manifest.round_id,
        manifest_digest=digest,
        kind=manifest.kind,
        task=run.task,
        cluster=task.cluster,
        stratum=task.stratum,
        visibility=task.visibility,
        arm=run.arm,
        model=manifest.lane(arm.lane).model,
        replicate=run.replicate,
        outcome=outcome or "missing",
        usd=usd,
        figure=_figure(usd, history),
        wall_ms=sum(a.wall_ms for a in attempts) if scored else None,
        attempts=attempts,
        scored_attempt=scored.scored_attempt if scored else None,
        **({} if manifest.protocol == VERSION_1_PROTOCOL else _version_2(history if scored else None)),
    )


def _version_2(history: RunHistory | None) -> dict[str, Any]:
    """What version 2 adds, for a scored run; the engine meters no charge beside the model's."""
    fields: dict[str, Any] = {"schema_version": "fairtrial.dataset/2"}
    return fields if history is None else fields | {"latency_ms": _latency_ms(history), "proofs": _proofs(history)}


def _latency_ms(history: RunHistory) -> int | None:
    """From the first intent to the verdict of the last attempt, waits and retries included.

    None when a clock that was set back makes it shorter than the harness's own time: then it is not known.
    """
    end = history.attempts[-1].terminal_at
    elapsed = None if end is None else end - history.attempts[0].intended_at
    worked = sum(attempt.result.wall_ms for attempt in history.attempts if attempt.result)
    return elapsed if elapsed is not None and elapsed >= worked else None


def _proofs(history: RunHistory) -> Proofs:
    """The model: of every answer of every attempt. The receipt: of the isolation of the attempt that was scored."""
    accounts = history.accounts
    answered = any(account.tokens for account in accounts)
    observed: bool | None = None
    if any(account.off_lane_models for account in accounts):
        observed = False
    elif answered and all(account.valid for account in accounts):
        observed = True
    isolation = history.attempts[-1].isolation
    has_receipt = isolation is not None and isolation.receipt_digest is not None
    return Proofs(observed_model=observed, receipt=not isolation.mismatches if isolation and has_receipt else None)


def _figure(usd: str | None, history: RunHistory | None) -> Figure | None:
    """What the cost is; a floor is no cost of the run, so there is none to label."""
    if usd is None:
        return None
    return history.reconciled.figure if history and history.reconciled else Figure.EXACT


def _attempt_rows(history: RunHistory) -> tuple[AttemptRow, ...]:
    return tuple(_attempt_row(a, history.account(a)) for a in history.attempts if a.classified is not None)


def _attempt_row(attempt: AttemptHistory, settled: AttemptSettled | None) -> AttemptRow:
    assert attempt.classified is not None
    result, classified = attempt.result, attempt.classified
    return AttemptRow(
        attempt_id=attempt.attempt_id,
        number=attempt.number,
        end=EndKind(classified.end),
        reason=classified.reason,
        wall_ms=result.wall_ms if result else 0,
        usd=settled.usd if settled else None,
        requests=settled.requests if settled else 0,
        turns=settled.requests if settled else None,
        tool_calls=None,
        tokens=dict(settled.tokens) if settled else {},
        self_reported_usd=result.self_reported_usd if result else None,
        verified=classified.verified,
        would_have_passed=classified.would_have_passed,
    )
