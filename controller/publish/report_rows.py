"""The rows of the report's tables: arms, comparisons, tasks and attempts, in the words a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from controller.domain.dataset import AttemptRow, LogicalRunRow
from controller.domain.money import usd_display, usd_from_text
from controller.domain.outcome import RETRYABLE, EndKind
from controller.domain.plan import Arm
from controller.protocols.harness_round.estimates import ArmAnalysis, PairAnalysis
from controller.protocols.harness_round.show import shown

END_WORDS = {
    EndKind.NORMAL: "ended normally",
    EndKind.HARNESS_CRASH: "harness crashed",
    EndKind.TIMEOUT: "timed out",
    EndKind.HARD_LIMIT: "hit a hard limit",
    EndKind.PROVIDER_ERROR: "provider error",
    EndKind.INFRASTRUCTURE: "infrastructure fault",
    EndKind.WRITTEN_OFF: "written off by the operator",
}


@dataclass(frozen=True, slots=True)
class ArmView:
    """One arm with the letter it carries through the page."""

    key: str
    arm: Arm
    model: str
    found: ArmAnalysis
    plot: Markup


@dataclass(frozen=True, slots=True)
class PairView:
    """One comparison. `verdict` is empty when there is no reliable difference."""

    first: ArmView
    second: ArmView
    found: PairAnalysis
    sentence: str
    verdict: str
    plot: Markup


@dataclass(frozen=True, slots=True)
class SpreadView:
    """How the runs of every arm spread over one measure: arm, words, and a plot that is empty without a value."""

    title: str
    rows: tuple[tuple[ArmView, str, Markup], ...]
    axis: Markup


@dataclass(frozen=True, slots=True)
class CellView:
    """How many repeats of one task succeeded under one arm; `fill` is that share in whole percent."""

    text: str
    fill: int
    note: str


@dataclass(frozen=True, slots=True)
class TaskView:
    id: str
    title: str
    stratum: str
    visibility: str
    cells: tuple[CellView, ...]


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt, or a logical run that has none; `outcome` stands on the run's scored attempt only."""

    task: str
    replicate: int
    number: str
    attempt_id: str
    ended: str
    reason: str
    usd: str
    time: str
    requests: str
    verified: str
    outcome: str
    success: bool


@dataclass(frozen=True, slots=True)
class LedgerView:
    """Every attempt of one arm."""

    arm: ArmView
    runs: int
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A logical run worth naming under exclusions, with why."""

    run: str
    text: str


def cell(arm: ArmView, place: int) -> CellView:
    """One arm on the task at that place of its analysis."""
    record = arm.found.tasks[place]
    notes = []
    if record.unknown:
        notes.append(f"{record.unknown} invalid or missing")
    if record.would_have_passed:
        notes.append(f"{record.would_have_passed} would have passed")
    fill = 100 * record.successes // record.replicates
    return CellView(f"{record.successes}/{record.replicates}", fill, "; ".join(notes))


def run_name(row: LogicalRunRow) -> str:
    """The logical run as the log names it."""
    return f"{row.task}.{row.arm}.r{row.replicate}"


def attempts(row: LogicalRunRow) -> list[AttemptView]:
    """Every attempt of a logical run; one line that says so for a run that has none."""
    if not row.attempts:
        return [
            AttemptView(
                task=row.task, replicate=row.replicate, number="none", attempt_id="", ended="never ran", reason="",
                usd="", time="", requests="", verified="", outcome=row.outcome, success=False,
            )
        ]  # fmt: skip
    return [_attempt(row, attempt) for attempt in row.attempts]


def _attempt(row: LogicalRunRow, attempt: AttemptRow) -> AttemptView:
    scored = attempt.number == row.scored_attempt
    retried = not scored and attempt.end in RETRYABLE
    passed = {True: "passed", False: "failed", None: "not verified"}[attempt.verified]
    return AttemptView(
        task=row.task,
        replicate=row.replicate,
        number=str(attempt.number),
        attempt_id=attempt.attempt_id,
        ended=END_WORDS[attempt.end],
        reason=attempt.reason,
        usd="unknown" if attempt.usd is None else usd_display(usd_from_text(attempt.usd)),
        time=shown(Fraction(attempt.wall_ms), "ms"),
        requests=str(attempt.requests),
        verified=f"{passed}, not counted" if attempt.would_have_passed else passed,
        outcome=row.outcome if scored else "retried" if retried else "",
        success=scored and row.outcome == "success",
    )
