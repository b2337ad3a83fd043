"""The books of a round for a reader: by arm and by logical run, with what each figure is and what others claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from controller.conductor.history import RunHistory
from controller.conductor.settlement import Books
from controller.domain import bodies
from controller.domain.ids import Digest
from controller.domain.money import UsdText, sum_usd, usd_from_text, usd_to_text
from controller.domain.provider_report import Figure, Finding, RequestResolved
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy, retail_usd
from controller.domain.usage import AttemptAccount, RequestState
from controller.settle import figure, settled_usd


class SelfReportGap(Record):
    """The harness's own figures against the meter's, over the attempts for which there are both. They never win."""

    attempts: int
    metered_usd: UsdText
    self_reported_usd: UsdText
    difference_usd: str  # self-reported less metered; exact, and may be negative


class RunSettlement(Record):
    """One logical run. `usd` is null when `figure` is a floor; `finding` is null when no report was compared."""

    run: str
    arm: str
    outcome: Literal["success", "failure", "invalid", "missing"]
    attempts: int
    requests: int
    unknown_requests: int
    figure: Figure
    usd: UsdText | None
    floor_usd: UsdText
    finding: Finding | None
    problems: tuple[str, ...]
    resolved: tuple[RequestResolved, ...]
    self_report: SelfReportGap | None
    retail_usd: UsdText | None


class ArmSettlement(Record):
    """The sums of one arm."""

    arm: str
    runs: int
    attempts: int
    requests: int
    unknown_requests: int
    figure: Figure
    usd: UsdText | None
    floor_usd: UsdText
    self_report: SelfReportGap | None
    retail_usd: UsdText | None


class ReportsUsed(Record):
    """Which usage reports were compared, and how much of them was other work of the same organization."""

    digests: tuple[Digest, ...]
    findings: dict[str, int]  # logical runs by finding
    rows_left_aside: int
    keys_left_aside: int


class Settlement(Record):
    """What `fairtrial settle --json` prints."""

    schema_version: Literal["fairtrial.settlement/1"] = "fairtrial.settlement/1"
    round_id: str
    closed: bool
    attempts: int
    requests: int
    usd: UsdText | None
    floor_usd: UsdText
    figure: Figure
    invalid_runs: tuple[str, ...]
    outcomes: bodies.RoundClosed
    reports: ReportsUsed | None
    retail_policy: str | None
    arms: tuple[ArmSettlement, ...]
    runs: tuple[RunSettlement, ...]


def settlement(books: Books, *, closed: bool, retail: RetailPolicy | None = None) -> Settlement:
    """Pure: the same books give the same settlement."""
    runs = tuple(
        _run(run.id, run.arm, books.histories.get(run.id), books.accounts, retail) for run in books.manifest.schedule
    )
    return Settlement(
        round_id=books.manifest.round_id,
        closed=closed,
        **books.settled.model_dump(),
        outcomes=books.closed,
        reports=_reports(books),
        retail_policy=retail.name if retail else None,
        arms=tuple(_arm(arm.id, [run for run in runs if run.arm == arm.id]) for arm in books.manifest.arms),
        runs=runs,
    )


def _reports(books: Books) -> ReportsUsed | None:
    bodies_found = [h.reconciled for h in books.histories.values() if h.reconciled is not None]
    if not bodies_found:
        return None
    findings = sorted(body.finding.value for body in bodies_found)
    return ReportsUsed(
        digests=tuple(sorted({digest for body in bodies_found for digest in body.provider.reports})),
        findings={name: findings.count(name) for name in dict.fromkeys(findings)},
        rows_left_aside=books.left_aside[0],
        keys_left_aside=books.left_aside[1],
    )


def _run(
    run: str,
    arm: str,
    history: RunHistory | None,
    accounts: Mapping[str, AttemptAccount],
    retail: RetailPolicy | None,
) -> RunSettlement:
    attempts = history.attempts if history else ()
    settled = history.accounts if history else ()
    rows = [row for attempt in attempts for row in accounts[attempt.attempt_id].requests]
    body = history.reconciled if history else None
    usd = sum_usd(account.usd for account in settled)
    resolved = {(each.attempt_id, each.sequence): each.usd for each in body.resolved} if body else {}
    unknown = [row for row in rows if row.state is RequestState.UNKNOWN]
    prices = [resolved.get((row.attempt_id, row.sequence), row.usd) for row in rows if row.counts]
    return RunSettlement(
        run=run,
        arm=arm,
        outcome=(history.outcome if history else None) or "missing",
        attempts=len(attempts),
        requests=sum(account.requests for account in settled),
        unknown_requests=sum((row.attempt_id, row.sequence) not in resolved for row in unknown),
        figure=body.figure if body else figure(usd, estimated=False),
        usd=usd,
        floor_usd=body.floor_usd if body else settled_usd(rows),
        finding=body.finding if body else None,
        problems=body.problems if body else tuple(problem for account in settled for problem in account.problems),
        resolved=body.resolved if body else (),
        self_report=_gap(history) if history else None,
        retail_usd=_retail(prices, retail) if usd is not None else None,
    )


def _retail(prices: Sequence[UsdText | None], retail: RetailPolicy | None) -> UsdText | None:
    """What a customer would be charged for the run; not known when some price is not."""
    known = [usd_from_text(price) for price in prices if price is not None]
    if retail is None or len(known) < len(prices):
        return None
    return usd_to_text(retail_usd(known, retail))


def _gap(history: RunHistory) -> SelfReportGap | None:
    pairs = [
        (account.usd, attempt.result.self_reported_usd)
        for attempt in history.attempts
        if (account := history.account(attempt)) is not None and attempt.result is not None
    ]
    return _difference([(usd, own) for usd, own in pairs if usd is not None and own is not None])


def _difference(pairs: Sequence[tuple[UsdText, UsdText]]) -> SelfReportGap | None:
    if not pairs:
        return None
    metered, own = (sum(map(usd_from_text, column), Fraction(0)) for column in zip(*pairs, strict=True))
    return _gap_of(len(pairs), metered, own)


def _gap_of(attempts: int, metered: Fraction, own: Fraction) -> SelfReportGap:
    sign = "-" if own < metered else ""
    return SelfReportGap(
        attempts=attempts,
        metered_usd=usd_to_text(metered),
        self_reported_usd=usd_to_text(own),
        difference_usd=sign + usd_to_text(abs(own - metered)),
    )


def _arm(arm: str, runs: Sequence[RunSettlement]) -> ArmSettlement:
    usd = sum_usd(run.usd for run in runs)
    gaps = [run.self_report for run in runs if run.self_report is not None]
    return ArmSettlement(
        arm=arm,
        runs=len(runs),
        attempts=sum(run.attempts for run in runs),
        requests=sum(run.requests for run in runs),
        unknown_requests=sum(run.unknown_requests for run in runs),
        figure=figure(usd, estimated=any(run.figure is Figure.ESTIMATED for run in runs)),
        usd=usd,
        floor_usd=usd_to_text(sum((usd_from_text(run.floor_usd) for run in runs), Fraction(0))),
        self_report=_gap_of(
            sum(gap.attempts for gap in gaps),
            sum((usd_from_text(gap.metered_usd) for gap in gaps), Fraction(0)),
            sum((usd_from_text(gap.self_reported_usd) for gap in gaps), Fraction(0)),
        )
        if gaps
        else None,
        retail_usd=sum_usd(run.retail_usd for run in runs),
    )
