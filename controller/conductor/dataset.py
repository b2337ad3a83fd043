"""The frozen table of a round, rebuilt from its statements: a pure function, so that a checker gets the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from controller.conductor.history import AttemptHistory, RunHistory, run_histories
from controller.domain.bodies import AttemptSettled
from controller.domain.dataset import AttemptRow, LogicalRunRow
from controller.domain.money import sum_usd
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.provider_report import Figure
from controller.domain.statement import Statement


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
    )


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
