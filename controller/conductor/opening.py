"""What an attempt may use at the meter and the result API, and how it is started. Opened before the lease."""

from __future__ import annotations

from typing import Final

from controller import run as run_stage
from controller.conductor.history import AttemptHistory
from controller.conductor.world import World, token_sha256
from controller.domain.ids import AttemptId, LogicalRunId
from controller.domain.instant import InstantMs
from controller.domain.launch import LaunchContext
from controller.domain.limits import VM_MARGIN_SECONDS
from controller.domain.plan import Lane, LogicalRun
from controller.domain.receipt import RunOrder
from controller.domain.statement import StatementKind
from controller.domain.usage import AttemptAccount
from controller.ports.ledger import AttemptOpening, UploadGrant

BASE_URL: Final = "http://127.0.0.1:8080"  # the shim's relay inside the container
WORKSPACE: Final = "/workspace"
DRAIN_SECONDS_MAX: Final = 120.0  # after the token is revoked, what is in flight gets this long to reach its end
DRAIN_POLL_SECONDS: Final = 0.25


def open_attempt(world: World, run: LogicalRun, attempt_id: AttemptId, attempt: AttemptHistory) -> None:
    """Admit the attempt at the meter and grant its uploads. Idempotent for one generation."""
    arm = world.manifest.arm(run.arm)
    lane = world.manifest.lane(arm.lane)
    lifetime_ms = (world.manifest.sandbox_limits.agent_seconds + VM_MARGIN_SECONDS) * 1000
    expires_at = InstantMs(_intended_at(world, attempt_id) + lifetime_ms)
    world.ledger.open_attempt(
        AttemptOpening(
            attempt_id=attempt_id,
            logical_run_id=LogicalRunId(run.id),
            token_sha256=token_sha256(world.token("rt", attempt_id, attempt.generation)),
            provider=lane.provider,
            model=lane.model,
            observed_models=lane.observed_models,
            rate_tier=lane.rate_tier,
            dialect=arm.dialect,
            provider_key_name=provider_key_name(lane, run, attempt.number),
            limits=world.manifest.spend_limits,
            expires_at=expires_at,
        )
    )
    upload = token_sha256(world.token("up", attempt_id, attempt.generation))
    world.artifacts.grant(
        tuple(
            UploadGrant(
                attempt_id=attempt_id, token_sha256=upload, name=name, bytes_max=bytes_max, expires_at=expires_at
            )
            for name, bytes_max in run_stage.artifact_sizes(world.manifest.artifact_limits).items()
        )
    )


def provider_key_name(lane: Lane, run: LogicalRun, number: int) -> str:
    """By which name the meter looks up the provider key of an attempt. A key serves one logical run at most."""
    return f"{lane.provider}:{run.task}:{run.arm}:{run.replicate}:{number}"


def _intended_at(world: World, attempt_id: AttemptId) -> InstantMs:
    intent = world.journal.find(StatementKind.ATTEMPT_INTENDED, attempt_id)
    assert intent is not None, "an attempt is opened only after its intent"
    return intent.at


def close_attempt(world: World, attempt_id: AttemptId) -> None:
    """Revoke the run-scoped token and the upload grants. What is in flight drains."""
    world.ledger.close_attempt(attempt_id)
    world.artifacts.revoke(attempt_id)


def drained_account(world: World, attempt_id: AttemptId) -> AttemptAccount:
    """The account once nothing is in flight, or as it stands when the patience is over: open rows make it invalid."""
    deadline = world.clock.monotonic_seconds() + DRAIN_SECONDS_MAX
    while True:
        account = world.ledger.account(attempt_id)
        if not in_flight(account):
            return account
        if world.clock.monotonic_seconds() >= deadline:
            return account
        world.clock.sleep(DRAIN_POLL_SECONDS)


def in_flight(account: AttemptAccount) -> int:
    """How many of its requests have not ended."""
    return sum(row.state.is_open for row in account.requests)


def launch_order(world: World, run: LogicalRun, attempt_id: AttemptId, generation: int) -> RunOrder:
    """Everything the run stage needs to carry the attempt out."""
    arm = world.manifest.arm(run.arm)
    brief = world.tasks.brief(run.task)
    context = LaunchContext(
        prompt=brief.prompt,
        base_url=BASE_URL,
        token=world.token("rt", attempt_id, generation),
        model=world.manifest.lane(arm.lane).model,
        settings=arm.settings,
        workspace=WORKSPACE,
    )
    return RunOrder(
        attempt_id=attempt_id,
        image=arm.image,
        workspace_tar=world.patches.base_commit_tar(brief.base),
        contract=world.harnesses[arm.harness].launch(context),
        limits=world.manifest.sandbox_limits,
        artifact_limits=world.manifest.artifact_limits,
        upload_token=world.token("up", attempt_id, generation),
        canary=world.token("canary", attempt_id, generation),
        probe_names=world.probe_names,
    )
