"""Step 6: nothing is missing, nothing is there twice, and every outcome follows from what was witnessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controller.domain import bodies
from controller.domain.ids import ArmId, LogicalRunId, TaskId, attempt_id, logical_run_id, sha256_digest
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.outcome import BLAME, RETRYABLE, EndKind
from controller.errors import BundleRejected
from controller.evidence.exhibits import Exhibits
from controller.evidence.stops import check_stops
from controller.evidence.trails import AttemptTrail, RunTrail, Trails, judged_patches, machine_attempt


def check_runs(exhibits: Exhibits) -> str:
    """(6) One score per logical run; one end, one account and one destroyed machine per attempt."""
    trails = exhibits.trails
    scheduled = [run.id for run in exhibits.manifest.schedule]
    for stranger in sorted(trails.runs.keys() - set(scheduled)):
        raise BundleRejected(f"the log speaks of logical run {stranger!r}, which was never scheduled")
    _check_machines(trails)
    unscored = 0
    for entry in exhibits.manifest.schedule:
        if entry.id != logical_run_id(TaskId(entry.task), ArmId(entry.arm), entry.replicate):
            raise BundleRejected(f"the schedule calls {entry.task} under {entry.arm} {entry.id!r}")
        run = trails.runs.get(entry.id, RunTrail())
        _check_attempts(exhibits, entry.id, run)
        if len(run.scored) > 1:
            raise BundleRejected(f"{entry.id} is scored {len(run.scored)} times")
        if len(run.reconciled) > 1:
            raise BundleRejected(f"{entry.id} is reconciled {len(run.reconciled)} times")
        if run.scored:
            _check_score(entry.id, run)
        elif run.halted or trails.stopped:
            unscored += 1
        elif trails.stopped_by_operator and exhibits.manifest.kind == "rehearsal":
            unscored += 1  # a person may end a rehearsal at will; a measured round ends for predeclared events only
        else:
            raise BundleRejected(f"{entry.id} has no score, and nothing predeclared says why")
    check_stops(exhibits.manifest.stop_rules, exhibits.statements)
    _check_stopped(trails)
    _check_closing(trails, scheduled)
    patches = _check_patches(exhibits)
    return (
        f"{len(scheduled) - unscored} logical runs scored, {unscored} halted or stopped, "
        f"{len(trails.attempts)} attempts, {patches} patches"
    )


def _check_machines(trails: Trails) -> None:
    """No machine that was leased was left standing, unless its cell is halted and a person is to decide."""
    for name, generation in sorted(trails.standing.items()):
        if not trails.runs[trails.attempts[machine_attempt(name)].run].halted:
            raise BundleRejected(f"machine {name} of generation {generation} was leased and never proven gone")


def _check_attempts(exhibits: Exhibits, run_id: str, run: RunTrail) -> None:
    numbers = [trail.number for trail in run.attempts]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) > ATTEMPTS_PER_LOGICAL_RUN_MAX:
        raise BundleRejected(f"{run_id} has attempts {numbers}")
    for trail in run.attempts:
        if trail.attempt_id != attempt_id(exhibits.manifest_digest, LogicalRunId(run_id), trail.number):
            raise BundleRejected(f"{trail.attempt_id} is not the name of attempt {trail.number} of {run_id}")
        is_last = trail.number == len(numbers)
        _check_attempt(exhibits, trail, may_be_open=is_last and run.halted and not run.scored)
        if not is_last and not _may_be_retried(trail):
            raise BundleRejected(f"{run_id} was tried again after attempt {trail.number}, which may not be retried")


def _may_be_retried(trail: AttemptTrail) -> bool:
    classified = trail.classified[-1]
    return classified.end in RETRYABLE and trail.settled[-1].valid


def _check_attempt(exhibits: Exhibits, trail: AttemptTrail, *, may_be_open: bool) -> None:
    """Settled, classified and destroyed exactly once; the last word agrees with result and verdict."""
    for name, found in (
        ("acknowledged", trail.results),
        ("settled", trail.settled),
        ("classified", trail.classified),
        ("judged", trail.verdicts),
    ):
        optional = may_be_open or name == "judged"
        if len(found) > 1 or (not found and not optional):
            raise BundleRejected(f"{trail.attempt_id} is {name} {len(found)} times")
    if exhibits.trails.gone.get(trail.attempt_id, 0) < trail.generation and not may_be_open:
        raise BundleRejected(f"the machine of {trail.attempt_id} was never proven gone")
    if not trail.classified:
        return
    classified, end = trail.classified[0], trail.results[0].end
    passed = trail.verdicts[0].verdict.passed if trail.verdicts else None
    expected = classified.model_copy(
        update={
            "run": trail.run,
            "number": trail.number,
            "end": end,
            "blame": BLAME[end],
            "retryable": end in RETRYABLE,
            "verified": passed,
            "would_have_passed": bool(passed) and end is not EndKind.NORMAL,
        }
    )
    if classified != expected:
        wrong = [name for name in type(classified).model_fields if getattr(classified, name) != getattr(expected, name)]
        raise BundleRejected(f"{trail.attempt_id} is classified otherwise than it was witnessed: {', '.join(wrong)}")
    _check_verdicts(trail, exhibits)


def _check_verdicts(trail: AttemptTrail, exhibits: Exhibits) -> None:
    """A patch passed only if it passed every gate of the rubric, in a machine of the frozen verifier image."""
    manifest = exhibits.manifest
    for reached in trail.verdicts:
        passed = tuple(gate.name for gate in reached.verdict.gates if gate.passed)
        if reached.verdict.passed and passed != manifest.rubric.gates:
            raise BundleRejected(f"{trail.attempt_id} passed without passing every gate")
        if reached.verifier_image != manifest.images[manifest.machines.verifier]:
            raise BundleRejected(f"{trail.attempt_id} was judged in a machine whose image is not the frozen one")


def _check_score(run_id: str, run: RunTrail) -> None:
    """The outcome follows from the last attempt, unless some account of the run did not settle."""
    score = run.scored[0]
    if not run.attempts:
        raise BundleRejected(f"{run_id} is scored without an attempt")
    last = run.attempts[-1]
    outcome = "failure"
    if not all(trail.settled[0].valid for trail in run.attempts):
        outcome = "invalid"
    elif last.classified[0].end is EndKind.NORMAL and last.classified[0].verified:
        outcome = "success"
        isolation = last.isolation[-1] if last.isolation else None
        if isolation is None or isolation.mismatches:
            raise BundleRejected(f"{run_id} succeeded in a sandbox whose isolation was not proven")
    elif _may_be_retried(last) and last.number < ATTEMPTS_PER_LOGICAL_RUN_MAX:
        raise BundleRejected(f"{run_id} was scored although it was to be tried again")
    if (score.outcome, score.scored_attempt, score.attempts) != (outcome, last.number, len(run.attempts)):
        raise BundleRejected(f"{run_id} is scored {score.outcome!r}, but its attempts give {outcome!r}")


def _check_stopped(trails: Trails) -> None:
    """A request that another model answered stops the round."""
    off_lane = sorted(
        name for name, trail in trails.attempts.items() if any(settled.off_lane_models for settled in trail.settled)
    )
    if off_lane and not trails.stopped:
        raise BundleRejected(f"{off_lane[0]} was answered by a model off its lane, and nothing stopped the round")


def _check_closing(trails: Trails, scheduled: Sequence[str]) -> None:
    """The round was closed once, and its last count covers every predeclared logical run."""
    if len(trails.closing) != 1:
        raise BundleRejected(f"the round was closed {len(trails.closing)} times")
    outcomes = Counter(run.outcome for run in trails.runs.values() if run.outcome is not None)
    counts = bodies.RoundClosed(
        success=outcomes["success"],
        failure=outcomes["failure"],
        invalid=outcomes["invalid"],
        missing=len(scheduled) - outcomes.total(),
    )
    if trails.closing[0] != counts:
        raise BundleRejected(f"the round was closed with {trails.closing[0]}, but the scores give {counts}")


def _check_patches(exhibits: Exhibits) -> int:
    """Every patch file belongs to a verdict, and every judged patch is there with the digest that was judged.

    Patches of sealed tasks hold their content, and are disclosed with it.
    """
    judged = judged_patches(exhibits.manifest, exhibits.trails, sealed=False)
    present = {name for name in exhibits.files if name.startswith("patches/")}
    for name in sorted(present - judged.keys()):
        raise BundleRejected(f"{name} belongs to no verdict on an open task")
    for name, digest in sorted(judged.items()):
        if digest is not None and (name not in present or sha256_digest(exhibits.files[name]) != digest):
            raise BundleRejected(f"{name} is missing or is not the patch that was judged")
    return len(present)
