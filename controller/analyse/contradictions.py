"""Contradictions inside one row of a dataset: what no type can say, whatever the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from controller.domain.dataset import USD, LogicalRunRow
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.money import usd_from_text
from controller.domain.outcome import EndKind
from controller.evidence.canonical import INTEGER_MAX

_ATTEMPT_COUNTS: Final = ("wall_ms", "requests", "turns", "tool_calls")


def contradictions(row: LogicalRunRow) -> Iterator[str]:
    """Every one as `field: what is wrong`."""
    numbers = [attempt.number for attempt in row.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "attempts: must be numbered from 1 without a gap, in order"
    if len(numbers) > ATTEMPTS_PER_LOGICAL_RUN_MAX:
        yield f"attempts: {len(numbers)}, but at most {ATTEMPTS_PER_LOGICAL_RUN_MAX} are allowed"
    for field, count in _counts(row):
        if count < 0:
            yield f"{field}: must not be negative"
        elif count > INTEGER_MAX:
            yield f"{field}: must be below 2**53, the largest integer that every JSON reader holds exactly"
    yield from _sum_problems(row)
    yield from _outcome_problems(row)
    yield from _version_problems(row)


def _counts(row: LogicalRunRow) -> Iterator[tuple[str, int]]:
    """Every counted field that is known, with its path."""
    yield "replicate", row.replicate
    for name in ("wall_ms", "latency_ms"):
        if (value := getattr(row, name)) is not None:
            yield name, value
    for place, attempt in enumerate(row.attempts):
        for name in _ATTEMPT_COUNTS:
            if (value := getattr(attempt, name)) is not None:
                yield f"attempts[{place}].{name}", value
        for token_class, count in attempt.tokens.items():
            yield f"attempts[{place}].tokens.{token_class}", count


def _sum_problems(row: LogicalRunRow) -> Iterator[str]:
    costs = [attempt.usd for attempt in row.attempts]
    known = [usd_from_text(usd) for usd in costs if usd is not None]
    if row.usd is not None and len(known) < len(costs):
        yield "usd: must be null, because the cost of an attempt is unknown"
    elif row.usd is not None and usd_from_text(row.usd) != sum(known, Fraction(0)):
        yield f"usd: {row.usd} is not the sum of the attempts"
    if row.wall_ms is not None and row.wall_ms != sum(attempt.wall_ms for attempt in row.attempts):
        yield f"wall_ms: {row.wall_ms} is not the sum of the attempts"


def _outcome_problems(row: LogicalRunRow) -> Iterator[str]:
    scored = row.scored
    if row.scored_attempt is not None and scored is None:
        yield f"scored_attempt: there is no attempt {row.scored_attempt}"
    sound = scored is not None and scored.end is EndKind.NORMAL and scored.verified is True
    if row.outcome == "success" and not sound:
        yield "outcome: a success needs a scored attempt that ended normally and was verified"
    if row.outcome == "failure" and sound:
        yield "outcome: its scored attempt ended normally and was verified, so it is a success, or `invalid`"
    if row.outcome == "missing" and row.scored_attempt is not None:
        yield "scored_attempt: must be null for a missing run, which has no scored outcome"
    if row.outcome in ("success", "failure") and row.wall_ms is None:
        yield "wall_ms: may be null only for a missing or an invalid run"
    if row.outcome in ("success", "failure") and not row.attempts:
        yield "attempts: a run that was scored has at least one"
    for place, attempt in enumerate(row.attempts):
        if attempt.would_have_passed and (attempt.end is EndKind.NORMAL or attempt.verified is False):
            yield f"attempts[{place}].would_have_passed: only of a patch that passes, after an end that is not normal"


def _version_problems(row: LogicalRunRow) -> Iterator[str]:
    """What only the second version of the format can say, in a row that says it is of the first."""
    if row.latency_ms is not None and row.latency_ms < sum(attempt.wall_ms for attempt in row.attempts):
        yield f"latency_ms: {row.latency_ms} is less than the time of the attempts"
    if row.schema_version == "fairtrial.dataset/1":
        for name in ("latency_ms", "charges", "proofs", "challenge"):
            if getattr(row, name) not in (None, ()):
                yield f"{name}: needs the schema_version fairtrial.dataset/2"
        if row.currency != USD:
            yield "currency: another one than USD needs the schema_version fairtrial.dataset/2"
