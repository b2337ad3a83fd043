"""From a plan file to a frozen round: gather what adapters know, then freeze."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from controller import schedule
from controller.adapters.flows import load_flows
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.conductor.opening import BASE_URL, WORKSPACE
from controller.domain.bodies import RoundFrozen
from controller.domain.launch import LaunchContext, LaunchContract
from controller.domain.plan import Arm
from controller.domain.statement import StatementKind
from controller.errors import InvalidPlan
from controller.freeze import FreezeInputs, Frozen, find_tasks, freeze, read_plan, read_rate_card
from controller.freeze.plan import PlanArm, RoundPlan
from controller.harnesses import HARNESSES, unknown_harness
from controller.settings import Settings
from controller.wiring.machines import require_images
from controller.wiring.round_tasks import sealed_tasks
from controller.wiring.tasks import load_bundle, remember_tasks
from controller.wiring.tools import local_files, publisher

MACHINES = frozenset({"vm-runner", "vm-verifier"})


def freeze_plan(settings: Settings, plan_path: Path, out: Path) -> Frozen:
    """Validate everything the plan names, and write the round's directory. Raises one error that names every fault."""
    plan = read_plan(plan_path)
    for arm in plan.arms:
        if arm.harness not in HARNESSES:
            raise unknown_harness(arm.harness)
    directories = find_tasks(plan, plan_path)
    card = read_rate_card(plan, plan_path)
    images = require_images(settings, MACHINES | {HARNESSES[arm.harness].image for arm in plan.arms})
    bundles = [load_bundle(settings, directory) for directory in directories]
    stores = sealed_tasks(plan, plan_path)
    seed = SystemEntropy().token_bytes(32).hex() if plan.seed == "generate" else plan.seed
    entries = [bundle.entry for bundle in bundles] + [task.entry for task, _ in stores]
    task_ids = [entry.id for entry in entries]
    inputs = FreezeInputs(
        plan=plan,
        seed=seed,
        tasks=tuple(entries),
        arms=tuple(_arm(arm, images) for arm in plan.arms),
        rate_card=card,
        images=images,
        network_policy_digest=load_flows(settings.flows_file).digest,
        schedule=schedule.allocation(
            task_ids, [arm.id for arm in plan.arms], plan.replicates, seed=seed, round_id=plan.round_id
        ),
        software=f"fairtrial {version('fairtrial')}",
        launch_contracts={arm.id: _public_contract(plan, arm) for arm in plan.arms},
    )
    mute = [bundle.entry.id for bundle in bundles if bundle.rehearsal_json is None]
    mute += [task.entry.id for task, _ in stores if not task.is_rehearsable]
    if plan.kind == "rehearsal" and mute:
        raise InvalidPlan(f"{plan_path.name}: tasks: no rehearsal.json in {', '.join(mute)}, so no model can play them")
    frozen = freeze(inputs, out, publisher(settings), SystemClock(), files=local_files())
    places = [*directories, *(store.directory for _, store in stores)]
    remember_tasks(out, dict(zip(task_ids, places, strict=True)))
    journal = SqlJournal.in_directory(out)
    body = RoundFrozen(manifest_digest=frozen.digest, corpus_root=frozen.manifest.corpus_root)
    journal.append(StatementKind.ROUND_FROZEN, plan.round_id, body, at=frozen.manifest.frozen_at)
    journal.close()
    return frozen


def _arm(arm: PlanArm, images: dict[str, str]) -> Arm:
    adapter = HARNESSES[arm.harness]
    adapter.check_settings(arm.settings)
    return Arm(
        id=arm.id,
        title=arm.title,
        harness=arm.harness,
        harness_version=adapter.version,
        image=adapter.image,
        image_digest=images[adapter.image],
        lane=arm.lane,
        dialect=adapter.dialect,
        settings=arm.settings,
        is_own=arm.is_own,
    )


def _public_contract(plan: RoundPlan, arm: PlanArm) -> LaunchContract:
    """The launch contract as published: with the names of the prompt and the token in place of their values."""
    lane = next(lane for lane in plan.lanes if lane.id == arm.lane)
    context = LaunchContext(
        prompt="{prompt}",
        base_url=BASE_URL,
        token="{run-token}",  # noqa: S106  a placeholder, which is the point
        model=lane.model,
        settings=arm.settings,
        workspace=WORKSPACE,
    )
    return HARNESSES[arm.harness].launch(context)
