"""A report's context over a synthetic round."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from controller.analyse import PlanInputs, analyse
from controller.domain.authorization import Caps
from controller.domain.dataset import LogicalRunRow
from controller.domain.ids import ArmId, TaskId, logical_run_id
from controller.domain.instant import InstantMs
from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.plan import Arm, Lane, LogicalRun, RoundManifest, TaskEntry
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.terms import LanePolicy, Rubric
from controller.protocols.harness_round.manifest import all_pairs
from controller.publish.report_context import ReportContext
from tests.world.rounds import MANIFEST, MODEL, SEED, jsonl
from tests.world.signer import FixedSigner

TITLES = {
    "t-cells": "Merged cells lose their border on export",
    "t-dates": "Relative dates are off by one at midnight",
    "t-globs": "A negated glob matches hidden files",
    "t-slugs": "Slugs keep a trailing hyphen after truncation",
    "t-sorts": "Natural sort puts v1.10 before v1.9",
    "t-units": "File sizes round up past the next unit",
}


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def task_entry(task: str) -> TaskEntry:
    return TaskEntry(
        id=task,
        title=TITLES.get(task, f"Synthetic task {task}"),
        stratum="small",
        cluster=f"repo-{task}",
        visibility="public",
        language="python",
        soundness="black-box",
        task_digest=digest(f"{task} task_digest"),
        prompt_digest=digest(f"{task} prompt_digest"),
        base_digest=digest(f"{task} base_digest"),
        verifier_digest=digest(f"{task} verifier_digest"),
        gold_digest=digest(f"{task} gold_digest"),
    )


def arm_entry(arm: str, *, own: str | None = None, title: str | None = None) -> Arm:
    return Arm(
        id=arm,
        title=title or arm.replace("-", " ").title(),
        harness=arm,
        harness_version="0.171.0",
        adapter_digest=digest(f"adapter {arm}"),
        image=f"harness-{arm}",
        image_digest=digest(f"image {arm}"),
        lane="lane-1",
        dialect="openai_responses",
        shims=(),
        settings={"reasoning": "medium"},
        is_own=arm == own,
    )


def manifest_of(rows: Sequence[LogicalRunRow], *, title: str, arms: Sequence[Arm]) -> RoundManifest:
    """The engine's manifest that the rows would have come from."""
    tasks = sorted({row.task for row in rows})
    card = RateCard(
        name="rehearsal",
        rows=(
            RateRow(
                provider="rehearsal",
                model=MODEL,
                source="invented for rehearsals",
                retrieved_on="2026-11-01",
                bands=(RateBand(over=0, nano_usd_per_million={"in": 1}),),
            ),
        ),
    )
    return RoundManifest(
        protocol="harness-round",
        round_id=rows[0].round_id,
        title=title,
        kind=rows[0].kind,
        frozen_at=InstantMs(1_796_000_000_000),
        software="fairtrial 0.1.0",
        software_digest=digest("package"),
        seed=SEED,
        replicates=max(row.replicate for row in rows),
        tasks=tuple(task_entry(task) for task in tasks),
        arms=tuple(arms),
        launch_contracts={arm.id: LaunchContract(argv=(arm.harness,), env={}, files={}) for arm in arms},
        lane_policy=LanePolicy(upstreams={"rehearsal": "the scripted model"}),
        lanes=(Lane(id="lane-1", provider="rehearsal", model=MODEL, observed_models=(MODEL,)),),
        rate_card=card,
        rate_card_digest=digest("card"),
        corpus_root=digest("corpus"),
        images={"vm-runner": digest("vm"), "vm-verifier": digest("verifier")},
        network_policy="flows",
        network_policy_digest=digest("flows"),
        sandbox_limits=SandboxLimits(),
        spend_limits=SpendLimits(),
        artifact_limits=ArtifactLimits(),
        envelope=Caps(logical_runs=len(rows), attempts=3 * len(rows), requests=1, usd="1", timeout_minutes=1),
        rubric=Rubric(gates=("hidden-verifier",)),
        approvers=(FixedSigner("a person").key,),
        schedule=tuple(
            LogicalRun(
                id=logical_run_id(TaskId(row.task), ArmId(row.arm), row.replicate),
                task=row.task,
                arm=row.arm,
                replicate=row.replicate,
                position=position,
                block=0,
            )
            for position, row in enumerate(rows)
        ),
    )


def context_of(
    rows: Sequence[LogicalRunRow],
    *,
    title: str = "Six small repairs",
    own: str | None = None,
    titles: dict[str, str] | None = None,
    resamples: int = 1_000,
) -> ReportContext:
    """The context of a report on these rows, with the analysis made from them."""
    ids = sorted({row.arm for row in rows})
    arms = [arm_entry(arm, own=own, title=(titles or {}).get(arm)) for arm in ids]
    manifest = manifest_of(rows, title=title, arms=arms)
    plan = PlanInputs(
        seed=SEED,
        comparisons=all_pairs(ids),
        arms=tuple(ids),
        tasks=tuple(sorted({row.task for row in rows})),
        replicates=manifest.replicates,
        resamples=resamples,
    )
    return ReportContext(
        manifest=manifest,
        manifest_digest=MANIFEST,
        dataset_digest=f"sha256:{hashlib.sha256(jsonl(rows)).hexdigest()}",
        rows=tuple(rows),
        analysis=analyse(rows, plan),
        isolation="vm",
    )
