"""From a plan and what adapters know to a manifest, or to everything that is wrong with it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from controller.domain.authorization import Caps
from controller.domain.ids import Digest, sha256_digest
from controller.domain.instant import InstantMs, instant_text
from controller.domain.keys import PublicKey
from controller.domain.launch import LaunchContract
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX, SandboxLimits, SpendLimits
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.plan import REHEARSAL_PROVIDER, UPSTREAMS, Arm, LogicalRun, RoundManifest, Seed, TaskEntry, cells
from controller.domain.rate_card import RateCard
from controller.domain.rating import RateKey, find_row
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy
from controller.domain.terms import Amendment, LanePolicy, Rubric
from controller.errors import InvalidPlan, UnpricedUsage
from controller.evidence.canonical import canonical
from controller.evidence.corpus import corpus_root
from controller.freeze.plan import GENERATE, RoundPlan
from controller.freeze.protocols import candidate_lanes, engine_problems, protocol_fields
from controller.protocols.manifests import MANIFESTS


class FreezeInputs(Record):
    """Everything that goes into the manifest. The conductor gathers it from adapters; the plan alone can't know it."""

    plan: RoundPlan
    seed: Seed  # the plan's, or the generated one
    tasks: tuple[TaskEntry, ...]
    calibration: tuple[TaskEntry, ...] = ()  # of an optimizer-matrix: scenarios that were used before it
    pilot: tuple[TaskEntry, ...] = ()
    fixtures: dict[str, Digest]  # by task, what only its evaluator holds; without the sealed tasks
    arms: tuple[Arm, ...]
    rate_card: RateCard
    retail_policy: RetailPolicy | None = None
    approvers: tuple[PublicKey, ...] = ()
    images: dict[str, Digest]  # every image by name: machines and harnesses
    network_policy: str  # the file of flows
    gates: tuple[str, ...]  # of a verdict, in order
    schedule: tuple[LogicalRun, ...]
    software: str
    software_digest: Digest
    launch_contracts: dict[str, LaunchContract]  # by arm
    amends: Amendment | None = None


def manifest_of(inputs: FreezeInputs, *, at: InstantMs) -> RoundManifest:
    """The manifest, as the record of the plan's protocol. Raises InvalidPlan with one line per problem."""
    found = [*problems(inputs, at=at)]
    if found:
        raise InvalidPlan("\n".join(f"round {inputs.plan.round_id}: {problem}" for problem in found))
    plan = inputs.plan
    tasks = tuple(sorted(inputs.tasks, key=lambda task: task.id))
    arms = tuple(sorted(inputs.arms, key=lambda arm: arm.id))
    retail = inputs.retail_policy
    fields: dict[str, Any] = {
        "round_id": plan.round_id,
        "title": plan.title,
        "kind": plan.kind,
        "amends": inputs.amends,
        "frozen_at": at,
        "software": inputs.software,
        "software_digest": inputs.software_digest,
        "seed": inputs.seed,
        "replicates": plan.replicates,
        "corpus_root": corpus_root(inputs.tasks),
        "tasks": tasks,
        "exclusions": plan.exclusions,
        "arms": arms,
        "launch_contracts": inputs.launch_contracts,
        "lanes": tuple(sorted(plan.lanes, key=lambda lane: lane.id)),
        "lane_policy": LanePolicy(upstreams={lane.provider: upstream(lane.provider) for lane in plan.lanes}),
        "rate_card": inputs.rate_card,
        "rate_card_digest": sha256_digest(canonical(inputs.rate_card)),
        "retail_policy": retail,
        "retail_policy_digest": sha256_digest(canonical(retail)) if retail else None,
        "images": inputs.images,
        "network_policy": inputs.network_policy,
        "network_policy_digest": sha256_digest(inputs.network_policy.encode()),
        "sandbox_limits": plan.limits.sandbox,
        "spend_limits": plan.limits.spend,
        "artifact_limits": plan.limits.artifacts,
        "envelope": plan.envelope or whole_envelope(len(inputs.schedule), plan.limits.spend, plan.limits.sandbox),
        "rubric": Rubric(gates=inputs.gates),
        "approvers": inputs.approvers,
        "schedule": inputs.schedule,
    }
    fields |= protocol_fields(
        plan, tasks, arms, calibration=inputs.calibration, pilot=inputs.pilot, fixtures=inputs.fixtures
    )
    try:
        return MANIFESTS[plan.protocol](**fields)
    except ValidationError as error:
        lines = [f"round {plan.round_id}: {item['msg']}" for item in error.errors(include_url=False)]
        raise InvalidPlan("\n".join(lines)) from error


def upstream(provider: str) -> str:
    """Where the meter forwards requests for that provider; the scripted model has no address."""
    return UPSTREAMS.get(provider, "the scripted model")


def whole_envelope(runs: int, spend: SpendLimits, sandbox: SandboxLimits) -> Caps:
    """What a round uses at the very most: every attempt that the retry rule allows, each with its ceilings."""
    attempts = runs * ATTEMPTS_PER_LOGICAL_RUN_MAX
    return Caps(
        logical_runs=runs,
        attempts=attempts,
        requests=attempts * spend.requests_per_attempt,
        usd=usd_to_text(attempts * usd_from_text(spend.usd_per_attempt)),
        timeout_minutes=max(1, -(-attempts * sandbox.agent_seconds // 60)),
    )


def problems(inputs: FreezeInputs, *, at: InstantMs) -> Iterator[str]:
    """What does not fit together, as `field: fault`."""
    yield from _task_problems(inputs)
    yield from _arm_problems(inputs)
    yield from _lane_problems(inputs, on=instant_text(at)[:10])
    yield from engine_problems(inputs.plan)
    if inputs.plan.seed not in (GENERATE, inputs.seed):
        yield "seed: differs from the plan's"
    expected = {str(cell[3]) for cell in cells(inputs.tasks, inputs.arms, inputs.plan.replicates)}
    scheduled = Counter(run.id for run in inputs.schedule)
    if set(scheduled) != expected or max(scheduled.values(), default=1) > 1:
        yield f"schedule: {sum(scheduled.values())} runs do not cover the {len(expected)} cells and repeats once each"


def _task_problems(inputs: FreezeInputs) -> Iterator[str]:
    if not inputs.tasks:
        yield "tasks: none found"
    counts = Counter(task.id for task in inputs.tasks)
    yield from (f"tasks: id {name!r} appears {count} times" for name, count in counts.items() if count > 1)
    for task in inputs.tasks:
        if task.visibility == "sealed" and task.sealed is None:
            yield f"tasks: {task.id} is to be sealed, so name its store under `sealed` (see `fairtrial task seal`)"


def _arm_problems(inputs: FreezeInputs) -> Iterator[str]:
    planned = {arm.id: arm for arm in inputs.plan.arms}
    if sorted(planned) != sorted(arm.id for arm in inputs.arms):
        yield "arms: differ from the plan's"
    for arm in inputs.arms:
        plan = planned.get(arm.id)
        if plan and (plan.harness, plan.lane, plan.settings) != (arm.harness, arm.lane, arm.settings):
            yield f"arms.{arm.id}: harness, lane or settings differ from the plan's"
        if inputs.images.get(arm.image) != arm.image_digest:
            yield f"arms.{arm.id}.image_digest: image {arm.image!r} is baked with another digest, or not at all"


def _lane_problems(inputs: FreezeInputs, *, on: str) -> Iterator[str]:
    used = {arm.lane for arm in inputs.plan.arms} | candidate_lanes(inputs.plan)
    for lane in inputs.plan.lanes:
        if lane.id not in used:
            yield f"lanes.{lane.id}: no arm uses it"
        if lane.provider not in (REHEARSAL_PROVIDER, *UPSTREAMS):
            yield f"lanes.{lane.id}.provider: the meter forwards to {', '.join(UPSTREAMS)}, not to {lane.provider!r}"
        try:
            row = find_row(inputs.rate_card, RateKey(provider=lane.provider, model=lane.model, tier=lane.rate_tier))
            if not row.in_force(on):
                yield f"lanes.{lane.id}: the rate card's prices of {lane.model} are not in force on {on}"
        except UnpricedUsage as error:
            yield f"lanes.{lane.id}: {error}"
