"""Part of step 7: what a provider's usage report changed, derived again from its rows in the log and the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional, Sequence, Set, Tuple

from . import claims as said
from .history import History, RunHistory
from .ledger import OPEN, Request, account_of, priced
from .money import total, usd_text
from .plan import ATTEMPTS_MAX, Plan
from .rates import Card, Lane, Usage, price_under
from .refusal import Refused
from .runs import RETRYABLE

MINUTE = 60_000
TAIL = 15 * MINUTE  # a provider may go on generating after its answer was lost
SEVERITY: Tuple[said.Finding, ...] = (
    "agrees",
    "assigned",
    "not-compared",
    "provider-more",
    "provider-less",
    "off-lane",
)
REFUTED = SEVERITY[3:]
Counts = Dict[Tuple[bool, str], int]  # (is a counted unit, name) -> how many
Answer = Tuple[said.Finding, Tuple[said.RequestResolved, ...]]


@dataclass
class _Span:
    """Requests whose minutes meet, from `start` up to and without `end`, and the report's rows of those minutes."""

    start: int
    end: int
    rows: List[Request]
    lines: List[said.ReportedUsage] = field(default_factory=list)


def check_reconciliations(plan: Plan, history: History, rows: Dict[str, List[Request]]) -> str:
    """Every run that was tried or none is reconciled, per provider with the same reports, each as the rules give it."""
    tried = {name: run for name, run in history.runs.items() if run.attempts}
    compared = {name: run for name, run in tried.items() if run.reconciled}
    if not compared:
        return ""
    for left_out in sorted(tried.keys() - compared.keys()):
        raise Refused(f"other runs were compared with the provider's report, but {left_out} was not")
    arms = {run.id: run.arm for run in plan.schedule}
    reports: Dict[str, Set[Tuple[str, ...]]] = {}
    for name, run in compared.items():
        lane = plan.lane_of(arms[name])
        reports.setdefault(lane.provider, set()).add(run.reconciled[0].provider.reports)
        settled = [attempt for attempt in run.attempts if attempt.every(said.AttemptSettled)]
        own = [row for attempt in settled for row in rows.get(attempt.id, [])]
        check_run(name, run, own, lane, plan.rate_card)
    for provider, sets in reports.items():
        if len(sets) > 1:
            raise Refused(f"runs on {provider} were compared with different reports")
    resolved = sum(len(run.reconciled[0].resolved) for run in compared.values())
    return f"{len(compared)} runs compared with the provider's report again, {resolved} unknown requests resolved, "


def check_run(name: str, run: RunHistory, rows: List[Request], lane: Lane, card: Card) -> None:
    """Raises Refused unless the reconciliation of one logical run is the one that its rows and the report give."""
    claimed = run.reconciled[0]
    finding, resolved = _compare(claimed.provider, rows, lane, card)
    changed = {(each.attempt_id, each.sequence): each for each in resolved}
    accounts = {}
    for attempt in run.attempts:
        settled = attempt.the(said.AttemptSettled)
        if settled is None:
            continue
        counted = [
            _resolved(row, changed.get((row.attempt_id, row.sequence))) for row in rows if row.attempt_id == attempt.id
        ]
        account = account_of(counted, settled.refusals, lane)
        accounts[attempt.id] = replace(account, usd=None, valid=False) if finding in REFUTED else account
    usd = total(account.usd for account in accounts.values())
    floor = "0" if finding == "provider-less" else usd_text(priced(rows))
    expected = said.RunReconciled(
        provider=claimed.provider,
        finding=finding,
        problems=(),
        resolved=resolved,
        accounts=accounts,
        outcome=_outcome(run, accounts) if run.scores else None,
        usd=usd,
        floor_usd=floor if usd is None else usd,
        figure="floor" if usd is None else "estimated" if finding == "assigned" else "exact",
    )
    # The wording of problems decides nothing, and is not made again.
    silent = {key: replace(account, problems=()) for key, account in claimed.accounts.items()}
    if replace(claimed, problems=(), accounts=silent) != expected:
        raise Refused(f"{name} is reconciled otherwise than the provider's report gives: {finding}, {usd} USD")


def _compare(provider: said.ProviderEvidence, rows: List[Request], lane: Lane, card: Card) -> Answer:
    """The gravest finding of all spans, stray rows, models and request counts."""
    if not provider.dedicated or not provider.usage or any(row.state in OPEN for row in rows):
        return "not-compared", ()
    spans = _spans(rows)
    findings: List[said.Finding] = ["agrees"]
    for line in provider.usage:
        home = next((span for span in spans if span.start <= line.minute < span.end), None)
        if home is not None:
            home.lines.append(line)
        elif _counts_something(line):
            findings.append("provider-more")
    is_whole = True
    resolved: List[said.RequestResolved] = []
    for span in spans:
        if _is_covered(span, provider.covered):
            finding, found = _compare_span(span, lane, card)
            findings.append(finding)
            resolved += found
        else:
            is_whole = False
            findings.append("not-compared")
    findings.append(_lane_finding(provider.usage, rows, lane))
    if is_whole:
        findings.append(_request_finding(provider.usage, rows))
    worst = max(findings, key=SEVERITY.index)
    if worst not in ("agrees", "assigned"):
        return worst, ()
    return worst, tuple(sorted(resolved, key=lambda each: (each.attempt_id, each.sequence)))


def _spans(rows: List[Request]) -> List[_Span]:
    """A request stands for the minutes from one before its acceptance to one after its end, an unknown one for a
    quarter of an hour more; those that meet are one span."""
    spans: List[_Span] = []
    billed = [row for row in rows if row.counts and row.state in ("settled", "unknown")]
    for row in sorted(billed, key=lambda each: (each.accepted_at, each.attempt_id, each.sequence)):
        ended_at = row.accepted_at if row.ended_at is None else max(row.accepted_at, row.ended_at)
        tail = TAIL if row.state == "unknown" else 0
        start = (row.accepted_at - MINUTE) // MINUTE * MINUTE
        end = (ended_at + MINUTE + tail) // MINUTE * MINUTE + MINUTE
        if spans and start <= spans[-1].end:
            spans[-1].end = max(spans[-1].end, end)
            spans[-1].rows.append(row)
        else:
            spans.append(_Span(start, end, [row]))
    return spans


def _is_covered(span: _Span, covered: Sequence[said.ReportedSpan]) -> bool:
    at = span.start
    for part in sorted(covered, key=lambda each: each.from_at):
        if part.from_at <= at < part.until_at:
            at = part.until_at
    return at >= span.end


def _compare_span(span: _Span, lane: Lane, card: Card) -> Answer:
    excess: Counter[Tuple[bool, str]] = Counter()
    for line in span.lines:
        excess.update(_counts(line.usage))
    for row in span.rows:
        if row.state == "settled" and row.usage is not None:
            excess.subtract(_counts(row.usage))
    unknown = [row for row in span.rows if row.state == "unknown"]
    if any(count < 0 for count in excess.values()):
        return "provider-less", ()
    if not any(excess.values()):
        return "agrees", tuple(
            said.RequestResolved(row.attempt_id, row.sequence, "provider_usage_report", None, "0") for row in unknown
        )
    if len(unknown) != 1:
        return "provider-more", ()
    assigned = _assign(unknown[0], excess, span.lines, lane, card)
    return ("provider-more", ()) if assigned is None else ("assigned", (assigned,))


def _assign(
    row: Request, excess: Counts, lines: List[said.ReportedUsage], lane: Lane, card: Card
) -> Optional[said.RequestResolved]:
    """The excess as the usage of the one request of unknown cost; None when it has no price."""
    conditions = {(line.tier, line.speed, line.geo) for line in lines if _counts_something(line)}
    if len(conditions) != 1:
        return None
    tier, speed, geo = conditions.pop()
    if tier is None:
        return None
    usage = Usage(
        tokens={name: count for (is_unit, name), count in excess.items() if count and not is_unit},  # type: ignore[misc]
        units={name: count for (is_unit, name), count in excess.items() if count and is_unit},
    )
    place = (lane.provider, lane.model, tier, speed or "standard", geo or "global")
    usd = price_under(card, place, usage)
    return None if usd is None else said.RequestResolved(row.attempt_id, row.sequence, None, usage, usd)


def _lane_finding(lines: Sequence[said.ReportedUsage], rows: List[Request], lane: Lane) -> said.Finding:
    names = (lane.model, *lane.observed_models)
    reported = any(
        _counts_something(line) and (line.model not in names or line.tier not in (None, lane.rate_tier))
        for line in lines
    )
    answered = any(row.observed_model not in (None, *lane.observed_models) for row in rows)
    return "off-lane" if reported or answered else "agrees"


def _request_finding(lines: Sequence[said.ReportedUsage], rows: List[Request]) -> said.Finding:
    """Where the provider counts requests: at least the settled ones, and none that was never sent."""
    counts = [line.requests for line in lines]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return "agrees"
    if sum(known) < sum(row.state == "settled" and row.counts for row in rows):
        return "provider-less"
    return "provider-more" if sum(known) > sum(row.zero_bill_proof != "never_sent" for row in rows) else "agrees"


def _counts(usage: Usage) -> Counts:
    tokens: Counts = {(False, str(name)): count for name, count in usage.tokens.items()}
    return {**tokens, **{(True, name): count for name, count in usage.units.items()}}


def _counts_something(line: said.ReportedUsage) -> bool:
    return any(_counts(line.usage).values())


def _resolved(row: Request, resolution: Optional[said.RequestResolved]) -> Request:
    """The row as it counts."""
    if resolution is None:
        return row
    return replace(
        row,
        state="zero_bill" if resolution.assigned is None else "settled",
        usage=resolution.assigned,
        usd=resolution.usd,
        zero_bill_proof=resolution.proof,
    )


def _outcome(run: RunHistory, accounts: Dict[str, said.AttemptSettled]) -> said.Outcome:
    """As the run would have been scored had its cost been known; a retry that it was not given leaves it invalid."""
    last = run.attempts[-1].the(said.AttemptClassified)
    if last is None or not all(account.valid for account in accounts.values()):
        return "invalid"
    if last.end == "normal" and last.verified:
        return "success"
    return "invalid" if last.end in RETRYABLE and last.number < ATTEMPTS_MAX else "failure"
