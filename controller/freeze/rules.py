"""From a plan and what adapters know to a manifest, or to everything that is wrong with it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from controller.domain.ids import Digest, sha256_digest
from controller.domain.instant import InstantMs, instant_text
from controller.domain.launch import LaunchContract
from controller.domain.plan import REHEARSAL_PROVIDER, UPSTREAMS, Arm, LogicalRun, Seed, TaskEntry, cells
from controller.domain.rate_card import RateCard
from controller.domain.rating import RateKey, find_row
from controller.domain.record import Record
from controller.errors import InvalidPlan, UnpricedUsage
from controller.evidence.canonical import canonical
from controller.evidence.corpus import corpus_root
from controller.freeze.plan import GENERATE, RoundPlan
from controller.protocols.harness_round.manifest import AnalysisPlan, HarnessRoundManifest, all_pairs


class FreezeInputs(Record):
    """Everything that goes into the manifest. The conductor gathers it from adapters; the plan alone can't know it."""

    plan: RoundPlan
    seed: Seed  # the plan's, or the generated one
    tasks: tuple[TaskEntry, ...]
    arms: tuple[Arm, ...]
    rate_card: RateCard
    images: dict[str, Digest]  # every image by name: machines and harnesses
    network_policy_digest: Digest
    schedule: tuple[LogicalRun, ...]
    software: str
    launch_contracts: dict[str, LaunchContract]  # by arm


def manifest_of(inputs: FreezeInputs, *, at: InstantMs) -> HarnessRoundManifest:
    """The manifest. Raises InvalidPlan with one line per problem."""
    found = [*problems(inputs, at=at)]
    if found:
        raise InvalidPlan("\n".join(f"round {inputs.plan.round_id}: {problem}" for problem in found))
    plan = inputs.plan
    try:
        return HarnessRoundManifest(
            round_id=plan.round_id,
            title=plan.title,
            kind=plan.kind,
            frozen_at=at,
            software=inputs.software,
            seed=inputs.seed,
            replicates=plan.replicates,
            corpus_root=corpus_root(inputs.tasks),
            tasks=tuple(sorted(inputs.tasks, key=lambda task: task.id)),
            arms=tuple(sorted(inputs.arms, key=lambda arm: arm.id)),
            lanes=tuple(sorted(plan.lanes, key=lambda lane: lane.id)),
            rate_card=inputs.rate_card,
            rate_card_digest=sha256_digest(canonical(inputs.rate_card)),
            images=inputs.images,
            network_policy_digest=inputs.network_policy_digest,
            sandbox_limits=plan.limits.sandbox,
            spend_limits=plan.limits.spend,
            artifact_limits=plan.limits.artifacts,
            schedule=inputs.schedule,
            analysis=AnalysisPlan(comparisons=all_pairs([arm.id for arm in inputs.arms])),
            launch_contracts=inputs.launch_contracts,
        )
    except ValidationError as error:
        lines = [f"round {plan.round_id}: {item['msg']}" for item in error.errors(include_url=False)]
        raise InvalidPlan("\n".join(lines)) from error


def problems(inputs: FreezeInputs, *, at: InstantMs) -> Iterator[str]:
    """What does not fit together, as `field: fault`."""
    yield from _task_problems(inputs)
    yield from _arm_problems(inputs)
    yield from _lane_problems(inputs, on=instant_text(at)[:10])
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
    used = {arm.lane for arm in inputs.plan.arms}
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
