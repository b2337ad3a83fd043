"""From a plan file to a frozen round: gather what adapters know, then freeze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from controller import schedule
from controller.adapters.flows import load_flows
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.signer_file import read_keys
from controller.adapters.software import module_digest, software_digest
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.conductor.opening import BASE_URL, WORKSPACE
from controller.domain.bodies import RoundFrozen
from controller.domain.ids import Digest, sha256_digest
from controller.domain.keys import PublicKey
from controller.domain.launch import LaunchContext, LaunchContract
from controller.domain.plan import Arm, TaskEntry
from controller.domain.rate_card import RateCard
from controller.domain.retail import RetailPolicy
from controller.domain.statement import StatementKind
from controller.domain.task import TaskBundle
from controller.domain.terms import WHY_CHARS_MIN, Amendment, Machines
from controller.errors import InvalidInput, InvalidPlan
from controller.freeze import FreezeInputs, Frozen, find_tasks, freeze, load_frozen, read_named_record, read_plan
from controller.freeze.plan import PlanArm, RoundPlan
from controller.harnesses import HARNESSES, unknown_harness
from controller.settings import Settings
from controller.verify.rules import GATES
from controller.wiring.machines import require_images
from controller.wiring.round_tasks import sealed_tasks
from controller.wiring.rounds import OpenRound, checkpoints_of
from controller.wiring.tasks import load_bundle, remember_tasks
from controller.wiring.tools import local_files, publisher

FIXTURES: Final = "cases.json"  # of a task's verifier: what only its evaluator holds; the rest of it is the grader


def freeze_plan(settings: Settings, plan_path: Path, out: Path, *, amends: Amendment | None = None) -> Frozen:
    """Validate everything the plan names, and write the round's directory. Raises one error that names every fault."""
    plan = read_plan(plan_path)
    for arm in plan.arms:
        if arm.harness not in HARNESSES:
            raise unknown_harness(arm.harness)
    directories = find_tasks(plan.tasks, plan_path)
    machines = Machines()
    names = {machines.runner, machines.verifier} | {HARNESSES[arm.harness].image for arm in plan.arms}
    images = require_images(settings, names)
    bundles = [load_bundle(settings, directory) for directory in directories]
    stores = sealed_tasks(plan, plan_path)
    mute = [bundle.entry.id for bundle in bundles if bundle.rehearsal_json is None]
    mute += [task.entry.id for task, _ in stores if not task.is_rehearsable]
    if plan.kind == "rehearsal" and mute:
        raise InvalidPlan(f"{plan_path.name}: tasks: no rehearsal.json in {', '.join(mute)}, so no model can play them")
    inputs = gather(
        settings,
        plan,
        plan_path,
        tasks=[*(bundle.entry for bundle in bundles), *(task.entry for task, _ in stores)],
        calibration=_earlier(settings, plan, plan_path, "calibration"),
        pilot=_earlier(settings, plan, plan_path, "pilot"),
        fixtures=fixture_digests(bundles),
        images=images,
        amends=amends,
    )
    frozen = freeze(inputs, out, publisher(settings), SystemClock(), files=local_files())
    places = [*directories, *(store.directory for _, store in stores)]
    remember_tasks(out, dict(zip([task.id for task in inputs.tasks], places, strict=True)))
    journal = SqlJournal.in_directory(out)
    body = RoundFrozen(manifest_digest=frozen.digest, corpus_root=frozen.manifest.corpus_root)
    journal.append(StatementKind.ROUND_FROZEN, plan.round_id, body, at=frozen.manifest.frozen_at)
    checkpoints_of(settings, OpenRound(out, frozen.manifest, frozen.digest, journal)).sign()
    journal.close()
    return frozen


def gather(
    settings: Settings,
    plan: RoundPlan,
    plan_path: Path,
    *,
    tasks: Sequence[TaskEntry],
    calibration: Sequence[TaskEntry] = (),
    pilot: Sequence[TaskEntry] = (),
    fixtures: Mapping[str, Digest],
    images: dict[str, Digest],
    amends: Amendment | None = None,
) -> FreezeInputs:
    """Everything that the manifest of a plan is made of, given its tasks and the images of this machine."""
    seed = SystemEntropy().token_bytes(32).hex() if plan.seed == "generate" else plan.seed
    flows = load_flows(settings.flows_file)
    arms = [arm.id for arm in plan.arms]
    return FreezeInputs(
        plan=plan,
        seed=seed,
        tasks=tuple(tasks),
        calibration=tuple(calibration),
        pilot=tuple(pilot),
        fixtures=dict(fixtures),
        arms=tuple(_arm(arm, images) for arm in plan.arms),
        rate_card=read_named_record(plan_path, "rate_card", plan.rate_card, RateCard),
        retail_policy=_retail_policy(plan, plan_path),
        approvers=_approvers(plan, plan_path),
        images=images,
        network_policy=flows.text,
        gates=GATES,
        schedule=schedule.allocation(
            [task.id for task in tasks], arms, plan.replicates, seed=seed, round_id=plan.round_id
        ),
        software=f"fairtrial {version('fairtrial')}",
        software_digest=software_digest(),
        launch_contracts={arm.id: _public_contract(plan, arm) for arm in plan.arms},
        amends=amends,
    )


def amendment_of(old: Path, why: str) -> Amendment:
    """What an amendment says of the round that it takes the place of, whose directory stays as it is.

    Raises RoundNotFound, BadSignature, InvalidInput for a reason that explains nothing.
    """
    if len(why.strip()) < WHY_CHARS_MIN:
        raise InvalidInput(f"why: {why!r} does not say why; readers of both rounds will want to know")
    frozen = load_frozen(old)
    return Amendment(round_id=frozen.manifest.round_id, manifest_digest=frozen.digest, why=why.strip())


def fixture_digests(bundles: Sequence[TaskBundle]) -> dict[str, Digest]:
    """By task, what only its evaluator holds."""
    return {bundle.entry.id: sha256_digest(bundle.verifier[FIXTURES]) for bundle in bundles}


def _earlier(settings: Settings, plan: RoundPlan, plan_path: Path, name: str) -> tuple[TaskEntry, ...]:
    """The scenarios of an earlier step of an optimizer-matrix."""
    if plan.optimizer_matrix is None:
        return ()
    patterns: tuple[str, ...] = getattr(plan.optimizer_matrix, name)
    found = find_tasks(patterns, plan_path, field=f"optimizer_matrix.{name}")
    return tuple(load_bundle(settings, directory).entry for directory in found)


def _retail_policy(plan: RoundPlan, plan_path: Path) -> RetailPolicy | None:
    if plan.retail_policy is None:
        return None
    return read_named_record(plan_path, "retail_policy", plan.retail_policy, RetailPolicy)


def _approvers(plan: RoundPlan, plan_path: Path) -> tuple[PublicKey, ...]:
    """The public keys of those who may approve the report, in byte order of their ids."""
    if plan.approvers is None:
        return ()
    try:
        ring = read_keys(plan_path.parent / plan.approvers)
    except InvalidInput as error:
        raise InvalidPlan(f"{plan_path.name}: approvers: {error}") from None
    return tuple(sorted(ring.keys, key=lambda key: key.id))


def _arm(arm: PlanArm, images: dict[str, str]) -> Arm:
    adapter = HARNESSES[arm.harness]
    adapter.check_settings(arm.settings)
    return Arm(
        id=arm.id,
        title=arm.title,
        harness=arm.harness,
        harness_version=adapter.version,
        adapter_digest=module_digest(adapter),
        image=adapter.image,
        image_digest=images[adapter.image],
        lane=arm.lane,
        dialect=adapter.dialect,
        shims=adapter.shims(arm.settings),
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
