"""One attempt, step by step. Each step asks the journal first, acts, and records; what is recorded is not repeated.

execute   lease, run, collect        -> result-acknowledged
destroy   the runner's machine       -> sandbox-destroyed
verify    in a network-less machine  -> verdict
settle    the meter's account        -> requests-refused, attempt-settled
classify  the last word              -> attempt-classified
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controller import run as run_stage
from controller.conductor import recovery
from controller.conductor.history import AttemptHistory, attempt_history
from controller.conductor.opening import close_attempt, drained_account, launch_order, open_attempt
from controller.conductor.verification import verify_attempt
from controller.conductor.world import World
from controller.destroy import destroy
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.outcome import BLAME, RETRYABLE, EndKind, SelfReport
from controller.domain.plan import LogicalRun
from controller.domain.receipt import Collected
from controller.domain.statement import StatementKind
from controller.errors import ControllerFault, SandboxLost
from controller.lease import lease, runner_spec
from controller.ports.harness import HarnessAdapter
from controller.settle import settle_attempt

REASON_CHARS_MAX: Final = 500
_PATH: Final = re.compile(r"(?<![\w.])/(?:[\w.@+-]+/)+([\w.@+-]+)")


class CellHalts(Exception):
    """Only a person may decide what becomes of this attempt."""

    def __init__(self, attempt: AttemptHistory, reason: str, requests: int) -> None:
        super().__init__(reason)
        self.body = bodies.CellHalted(
            attempt_id=attempt.attempt_id, number=attempt.number, reason=reason, requests=requests
        )


@dataclass(frozen=True)
class Step:
    """A named step, when it is done, and what it does."""

    name: str
    done: Callable[[AttemptHistory], bool]
    act: Callable[[World, LogicalRun, AttemptHistory], None]


def intend(world: World, run: LogicalRun, attempt_id: AttemptId, number: int, *, generation: int) -> None:
    """Write the intent durably, before any effect."""
    body = bodies.AttemptIntended(run=run.id, number=number, generation=generation, epoch=world.epoch)
    key = f"{StatementKind.ATTEMPT_INTENDED}:{attempt_id}:g{generation}"
    world.journal.append(StatementKind.ATTEMPT_INTENDED, attempt_id, body, at=world.clock.now(), key=key)


def load(world: World, attempt_id: AttemptId) -> AttemptHistory:
    """The attempt as the journal knows it now."""
    return attempt_history(attempt_id, world.journal.of(attempt_id))


def execute(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """Bring the attempt to an acknowledged result, whatever state it was found in. Raises CellHalts."""
    attempt_id = AttemptId(attempt.attempt_id)
    collected: Collected | None = None
    fault: str | None = None
    match recovery.decide(_found(world, attempt)):
        case recovery.Decision.HALT:
            requests = len(world.ledger.account(attempt_id).requests)
            raise CellHalts(attempt, "the machine is gone without a result, and requests were made", requests)
        case recovery.Decision.LOST:
            fault = "the machine was lost with the controller, before it made any request"
        case recovery.Decision.BEGIN:
            close_attempt(world, attempt_id)
            intend(world, run, attempt_id, attempt.number, generation=attempt.generation + 1)
            attempt = load(world, attempt_id)
        case recovery.Decision.ACCEPT | recovery.Decision.CONTINUE:
            pass
    if fault is None:
        try:
            if not _result_durable(world, attempt_id):
                _run_in_machine(world, run, attempt)
        except SandboxLost as error:
            fault = without_paths(str(error))
    if _result_durable(world, attempt_id):  # a machine that dies after it has handed everything in takes nothing away
        collected, fault = run_stage.collect(world.artifacts, attempt_id, world.manifest.artifact_limits), None
    close_attempt(world, attempt_id)
    _acknowledge(world, run, attempt, collected, fault)


def without_paths(text: str) -> str:
    """The text with every absolute path cut down to its last part: the log is published, our layout is not."""
    return _PATH.sub(r"\1", text)[:REASON_CHARS_MAX]


def _found(world: World, attempt: AttemptHistory) -> recovery.Found:
    attempt_id = AttemptId(attempt.attempt_id)
    return recovery.Found(
        fresh=attempt.intended_epoch == world.epoch,
        result_durable=_result_durable(world, attempt_id),
        machine_alive=world.pool.find(attempt.attempt_id) is not None,
        artifacts=len(world.artifacts.list(attempt_id)),
        account=world.ledger.account(attempt_id),
    )


def _result_durable(world: World, attempt_id: AttemptId) -> bool:
    """The guest uploads its exit record last, so its presence means that everything before it is there."""
    return any(stored.name == run_stage.LAST_ARTIFACT for stored in world.artifacts.list(attempt_id))


def _run_in_machine(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    attempt_id = AttemptId(attempt.attempt_id)
    open_attempt(world, run, attempt_id, attempt)
    spec = runner_spec(
        attempt_id,
        generation=attempt.generation,
        limits=world.manifest.sandbox_limits,
        image=world.manifest.images[world.manifest.machines.runner],
        owner=world.owner,
        egress_socket=world.egress_socket,
    )
    sandbox = lease(world.pool, world.journal, world.clock, spec)
    world.execute(sandbox, launch_order(world, run, attempt_id, attempt.generation))


def _acknowledge(
    world: World, run: LogicalRun, attempt: AttemptHistory, collected: Collected | None, fault: str | None
) -> None:
    """Judge how the execution ended from what was witnessed outside, and write it down with the artifacts' digests."""
    attempt_id = AttemptId(attempt.attempt_id)
    account = drained_account(world, attempt_id)
    if collected is None:
        mismatches: tuple[str, ...] = (fault or "the machine was lost",)
        end, reason, wall_ms, missing = EndKind.INFRASTRUCTURE, mismatches[0], 0, mismatches[:0]
        receipt_digest, refused, self_usd = None, 0, None
    else:
        limits = world.manifest.sandbox_limits
        found = run_stage.receipt_mismatches(
            collected.receipt, limits, isolation=world.pool.isolation, probe_names=world.probe_names
        )
        mismatches = tuple(world.without_names(fault) for fault in found)
        end, reason = run_stage.judge_end(collected, mismatches, account, world.manifest.spend_limits)
        wall_ms = collected.exit.wall_ms if collected.exit else 0
        missing = collected.missing
        receipt_digest = collected.receipt_digest
        refused = collected.receipt.refused if collected.receipt else 0
        adapter = world.harnesses[world.manifest.arm(run.arm).harness]
        self_usd = _self_report(adapter, collected).usd
    checked = bodies.IsolationChecked(
        receipt_digest=receipt_digest, probes_refused=refused, mismatches=tuple(mismatches)
    )
    world.journal.append(StatementKind.ISOLATION_RECEIPT, attempt_id, checked, at=world.clock.now())
    body = bodies.ResultAcknowledged(
        artifacts=world.artifacts.list(attempt_id),
        missing=missing,
        wall_ms=wall_ms,
        end=end,
        reason=reason,
        self_reported_usd=self_usd,
    )
    world.journal.append(StatementKind.RESULT_ACKNOWLEDGED, attempt_id, body, at=world.clock.now())


def _self_report(adapter: HarnessAdapter, collected: Collected) -> SelfReport:
    """What the harness says of itself. Nothing depends on it, so nothing it wrote may stop us."""
    try:
        return adapter.self_report(collected.reports, collected.log)
    except Exception:
        return SelfReport()


def tear_down(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """Destroy the runner's machine once its result is durable."""
    destroy(world.pool, world.journal, world.clock, attempt.attempt_id, generation=attempt.generation)


def settle(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """Write the meter's account of the attempt, and what it refused."""
    account = drained_account(world, AttemptId(attempt.attempt_id))
    lane = world.manifest.lane(world.manifest.arm(run.arm).lane)
    if account.refusals:
        reasons = Counter(refusal.reason for refusal in account.refusals)
        refused = bodies.RequestsRefused(reasons=dict(sorted(reasons.items())))
        world.journal.append(StatementKind.REQUESTS_REFUSED, attempt.attempt_id, refused, at=world.clock.now())
    body = settle_attempt(account, observed_models=lane.observed_models)
    world.journal.append(StatementKind.ATTEMPT_SETTLED, attempt.attempt_id, body, at=world.clock.now())


def classify(world: World, run: LogicalRun, attempt: AttemptHistory) -> None:
    """The last word on the attempt. A normal answer is never retryable."""
    if attempt.result is None:
        raise ControllerFault(f"attempt {attempt.attempt_id} is classified before its result")
    end = attempt.result.end
    passed = attempt.verdict.verdict.passed if attempt.verdict else None
    reason = attempt.result.reason
    if end is EndKind.NORMAL and attempt.verdict and not passed:
        failed = next(gate for gate in attempt.verdict.verdict.gates if not gate.passed)
        reason = f"{failed.name}: {failed.detail}"
    body = bodies.AttemptClassified(
        run=run.id,
        number=attempt.number,
        end=end,
        reason=reason,
        blame=BLAME[end],
        retryable=end in RETRYABLE,
        verified=passed,
        would_have_passed=bool(passed) and end is not EndKind.NORMAL,
    )
    world.journal.append(StatementKind.ATTEMPT_CLASSIFIED, attempt.attempt_id, body, at=world.clock.now())


ATTEMPT_STEPS: tuple[Step, ...] = (
    Step("execute", lambda a: a.result is not None, execute),
    Step("destroy", lambda a: a.runner_gone, tear_down),
    Step("verify", lambda a: a.verdict is not None or a.isolation_voids, verify_attempt),
    Step("settle", lambda a: a.settled is not None, settle),
    Step("classify", lambda a: a.classified is not None, classify),
)
