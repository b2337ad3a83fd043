"""Step 6: nothing is missing, nothing is there twice, and every outcome follows from what was witnessed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, List, Optional

from . import claims as said
from .files import Files, patch_name
from .history import Attempt, History, RunHistory
from .log import Statement
from .merkle import sha256_digest
from .plan import ATTEMPTS_MAX, Plan, attempt_id, run_id
from .refusal import Refused
from .stops import check_stops

BLAME: Dict[said.End, Optional[said.Blame]] = {
    "normal": None,
    "harness_crash": "harness",
    "timeout": "harness",
    "hard_limit": "harness",
    "provider_error": "provider",
    "infrastructure": "sandbox",
    "written_off": "controller",
}
RETRYABLE = ("harness_crash", "timeout", "provider_error", "infrastructure")


def check_runs(plan: Plan, manifest_digest: str, history: History, log: List[Statement], files: Files) -> str:
    """(6) One score per logical run; one end, one account and one destroyed machine per attempt."""
    names = {run.id for run in plan.schedule}
    for stranger in sorted(history.runs.keys() - names):
        raise Refused(f"the log speaks of logical run {stranger[:120]!r}, which was never scheduled")
    for machine in sorted(history.standing):
        attempt = history.attempts["att-" + machine[4:] if machine.startswith("ver-") else machine]
        if not history.runs[attempt.run].is_halted:
            raise Refused(f"machine {machine} was leased and never proven gone")
    unscored = 0
    for entry in plan.schedule:
        if entry.id != run_id(entry.task, entry.arm, entry.replicate):
            raise Refused(f"the schedule calls {entry.task} under {entry.arm} {entry.id[:120]!r}")
        run = history.runs.get(entry.id, RunHistory())
        _check_attempts(plan, manifest_digest, history, entry.id, run)
        if len(run.scores) > 1 or len(run.reconciled) > 1:
            raise Refused(f"{entry.id} is scored {len(run.scores)} times, reconciled {len(run.reconciled)} times")
        if run.scores:
            _check_score(entry.id, run)
        elif run.is_halted or history.was_stopped or (history.is_paused and plan.kind == "rehearsal"):
            unscored += 1
        else:
            raise Refused(f"{entry.id} has no score, and nothing predeclared says why")
    check_stops(plan.stop_rules, log)
    _check_stop(history)
    _check_closing(history, len(plan.schedule))
    patches = _check_patches(plan, history, files)
    return (
        f"{len(plan.schedule) - unscored} logical runs scored, {unscored} halted or stopped, "
        f"{len(history.attempts)} attempts, {patches} patches"
    )


def _check_attempts(plan: Plan, manifest_digest: str, history: History, name: str, run: RunHistory) -> None:
    numbers = [attempt.number for attempt in run.attempts]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) > ATTEMPTS_MAX:
        raise Refused(f"{name} has attempts {numbers[:10]}")
    for attempt in run.attempts:
        if attempt.id != attempt_id(manifest_digest, name, attempt.number):
            raise Refused(f"{attempt.id[:80]} is not the name of attempt {attempt.number} of {name}")
        is_last = attempt.number == len(numbers)
        _check_attempt(plan, history, attempt, may_be_open=is_last and run.is_halted and not run.scores)
        if not is_last and not _may_be_retried(attempt):
            raise Refused(f"{name} was tried again after attempt {attempt.number}, which may not be retried")


def _check_attempt(plan: Plan, history: History, attempt: Attempt, *, may_be_open: bool) -> None:
    for kind, word in (
        (said.ResultAcknowledged, "acknowledged"),
        (said.AttemptSettled, "settled"),
        (said.AttemptClassified, "classified"),
        (said.VerdictReached, "judged"),
    ):
        count = len(attempt.every(kind))
        if count > 1 or (count == 0 and not may_be_open and kind is not said.VerdictReached):
            raise Refused(f"{attempt.id} is {word} {count} times")
    if history.gone.get(attempt.id, 0) < attempt.generation and not may_be_open:
        raise Refused(f"the machine of {attempt.id} was never proven gone")
    classified, result = attempt.the(said.AttemptClassified), attempt.the(said.ResultAcknowledged)
    if classified is None:
        return
    if result is None:
        raise Refused(f"{attempt.id} is classified without a result")
    reached = attempt.the(said.VerdictReached)
    passed = None if reached is None else reached.verdict.passed
    expected = replace(
        classified,
        run=attempt.run,
        number=attempt.number,
        end=result.end,
        blame=BLAME[result.end],
        retryable=result.end in RETRYABLE,
        verified=passed,
        would_have_passed=bool(passed) and result.end != "normal",
    )
    if classified != expected:
        raise Refused(f"{attempt.id} is classified otherwise than it was witnessed")
    if reached is not None:
        _check_verdict(plan, attempt, reached)


def _check_verdict(plan: Plan, attempt: Attempt, reached: said.VerdictReached) -> None:
    passed = tuple(gate.name for gate in reached.verdict.gates if gate.passed)
    if reached.verdict.passed and passed != plan.rubric.gates:
        raise Refused(f"{attempt.id} passed without passing every gate of the rubric")
    if reached.verifier_image != plan.images[plan.machines.verifier]:
        raise Refused(f"{attempt.id} was judged in a machine whose image is not the frozen one")


def _may_be_retried(attempt: Attempt) -> bool:
    """The end was a retryable one, and the account settled: a later success can't repair an unknown cost."""
    classified, settled = attempt.the(said.AttemptClassified), attempt.the(said.AttemptSettled)
    return classified is not None and settled is not None and classified.end in RETRYABLE and settled.valid


def _check_score(name: str, run: RunHistory) -> None:
    if not run.attempts:
        raise Refused(f"{name} is scored without an attempt")
    last = run.attempts[-1]
    classified, isolation = last.the(said.AttemptClassified), last.the(said.IsolationChecked)
    outcome = "failure"
    if not all(account is not None and account.valid for account in _first_accounts(run)):
        outcome = "invalid"
    elif classified is not None and classified.end == "normal" and classified.verified:
        outcome = "success"
        if isolation is None or isolation.mismatches:
            raise Refused(f"{name} succeeded in a sandbox whose isolation was not proven")
    elif _may_be_retried(last) and last.number < ATTEMPTS_MAX:
        raise Refused(f"{name} was scored although it was to be tried again")
    score = run.scores[0]
    if (score.outcome, score.scored_attempt, score.attempts) != (outcome, last.number, len(run.attempts)):
        raise Refused(f"{name} is scored {score.outcome!r}, but its attempts give {outcome!r}")


def _first_accounts(run: RunHistory) -> List[Optional[said.AttemptSettled]]:
    """What each attempt settled with, before any provider's report."""
    return [attempt.the(said.AttemptSettled) for attempt in run.attempts]


def _check_stop(history: History) -> None:
    """A request that another model answered stops the round."""
    for attempt in history.attempts.values():
        if any(settled.off_lane_models for settled in attempt.every(said.AttemptSettled)) and not history.was_stopped:
            raise Refused(f"{attempt.id} was answered by a model off its lane, and nothing stopped the round")


def _check_closing(history: History, scheduled: int) -> None:
    """The round was closed once, with the count of every predeclared run."""
    if len(history.closings) != 1:
        raise Refused(f"the round was closed {len(history.closings)} times")
    outcomes = Counter(run.outcome for run in history.runs.values() if run.outcome is not None)
    counts = said.RoundClosed(
        success=outcomes["success"],
        failure=outcomes["failure"],
        invalid=outcomes["invalid"],
        missing=scheduled - sum(outcomes.values()),
    )
    if history.closings[0] != counts:
        raise Refused(f"the round was closed with {history.closings[0]}, but the scores give {counts}")


def _check_patches(plan: Plan, history: History, files: Files) -> int:
    """Every patch belongs to a verdict, and has the digest that was judged. Those of sealed tasks are withheld."""
    hidden = {task.id for task in plan.tasks if task.sealed is not None}
    open_runs = {run.id for run in plan.schedule if run.task not in hidden}
    judged: Dict[str, object] = {}
    for attempt in history.attempts.values():
        for reached in attempt.every(said.VerdictReached) if attempt.run in open_runs else ():
            judged[patch_name(attempt.id)] = reached.verdict.patch_digest
    present = {name for name in files if name.startswith("patches/")}
    for name in sorted(present - judged.keys()):
        raise Refused(f"{name} belongs to no verdict on an open task")
    for name, digest in sorted(judged.items()):
        if digest is not None and (name not in files or sha256_digest(files[name]) != digest):
            raise Refused(f"{name} is missing or is not the patch that was judged")
    return len(present)
