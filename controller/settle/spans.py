"""Requests that a report by the minute can't tell apart, and what it says of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.domain.instant import InstantMs, instant_text
from controller.domain.provider_report import MINUTE_MS, ProviderEvidence, ReportedUsage
from controller.domain.usage import MeteredRequest, RequestState, Usage

SKEW_MS: Final = MINUTE_MS  # between the provider's clock and ours
TAIL_MS: Final = 15 * MINUTE_MS  # a provider may go on generating, and bill it, after its answer was lost to us
UNIT: Final = "unit:"  # marks counted units beside token classes in one count


@dataclass
class Span:
    """Requests that can't be told apart by the minute, from `start` up to and without `end`, and what was reported."""

    start: int
    end: int
    rows: list[MeteredRequest]
    lines: list[ReportedUsage] = field(default_factory=list)


def spans_of(rows: Sequence[MeteredRequest]) -> list[Span]:
    """Requests that may have been billed, in spans of whole minutes that do not touch one another."""
    spans: list[Span] = []
    billed = [row for row in rows if row.counts and row.state in (RequestState.SETTLED, RequestState.UNKNOWN)]
    for row in sorted(billed, key=lambda each: (each.accepted_at, each.attempt_id, each.sequence)):
        tail = TAIL_MS if row.state is RequestState.UNKNOWN else 0
        start = (row.accepted_at - SKEW_MS) // MINUTE_MS * MINUTE_MS
        ended_at = row.accepted_at if row.ended_at is None else max(row.accepted_at, row.ended_at)
        end = -(-(ended_at + SKEW_MS + tail + 1) // MINUTE_MS) * MINUTE_MS
        if spans and start <= spans[-1].end:
            spans[-1].end = max(spans[-1].end, end)
            spans[-1].rows.append(row)
        else:
            spans.append(Span(start, end, [row]))
    return spans


def distribute(lines: Sequence[ReportedUsage], spans: Sequence[Span]) -> list[ReportedUsage]:
    """Give each line to the span that holds its minute; returns those that no span holds."""
    strays = []
    for line in lines:
        home = next((span for span in spans if span.start <= line.minute < span.end), None)
        if home is None:
            strays.append(line)
        else:
            home.lines.append(line)
    return strays


def gap(span: Span, provider: ProviderEvidence) -> str | None:
    """The first minute of the span that no report has."""
    at = span.start
    for part in sorted(provider.covered, key=lambda each: each.from_at):
        if part.from_at <= at < part.until_at:
            at = part.until_at
    return None if at >= span.end else f"no report has the minute {minute_text(at)}"


def classes(usages: Iterable[Usage]) -> Counter[str]:
    """Tokens by class, and counted units by name with a mark before it."""
    found: Counter[str] = Counter()
    for usage in usages:
        found.update({str(name): count for name, count in usage.tokens.items()})
        found.update({UNIT + name: count for name, count in usage.units.items()})
    return found


def counts_something(line: ReportedUsage) -> bool:
    """Whether any of its counts is not zero."""
    return any(classes([line.usage]).values())


def minute_text(at: int) -> str:
    """`2026-11-30T12:05Z`."""
    return instant_text(InstantMs(at))[:16] + "Z"
