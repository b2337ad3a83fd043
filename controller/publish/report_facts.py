"""The frozen facts and the limitations of a report, as names and values."""

from __future__ import annotations

from dataclasses import dataclass

from controller.domain.instant import instant_text
from controller.domain.limits import GIB
from controller.domain.plan import Arm, RoundManifest
from controller.publish.report_context import ReportContext


@dataclass(frozen=True, slots=True)
class FactGroup:
    title: str
    facts: tuple[tuple[str, str], ...]


def frozen_facts(context: ReportContext) -> tuple[FactGroup, ...]:
    """Everything that was fixed before the first run, and the digests of what came out."""
    manifest, resampling = context.manifest, context.analysis.resampling
    times = (("started", context.started_at), ("ended", context.ended_at))
    return (
        FactGroup(
            "Round",
            (
                ("round", manifest.round_id),
                ("protocol", manifest.protocol),
                ("kind", manifest.kind),
                ("frozen", instant_text(manifest.frozen_at)),
                *((name, instant_text(at)) for name, at in times if at is not None),
                ("isolation", context.isolation),
                ("software", f"{manifest.software}, {manifest.software_digest}"),
                *(
                    (("amends", manifest.amends.manifest_digest), ("why", manifest.amends.why))
                    if manifest.amends
                    else ()
                ),
                ("manifest", context.manifest_digest),
                ("corpus root", manifest.corpus_root),
                ("dataset", context.dataset_digest),
            ),
        ),
        FactGroup(
            "Analysis",
            (
                ("generator", resampling.generator),
                ("seed", resampling.seed),
                ("label", resampling.label),
                ("resamples", f"{resampling.resamples:,}"),
                ("index matrix", resampling.matrix_digest),
                ("task list", resampling.tasks_digest),
                ("success margin", f"-{context.analysis.margin_points} percentage points"),
                ("saving", f"at least {context.analysis.saving_percent} %"),
            ),
        ),
        FactGroup("Limits of every attempt", _limits(manifest)),
        FactGroup(
            "Prices and network",
            (
                ("rate card", f"{manifest.rate_card.name}, retrieved {manifest.rate_card.retrieved}"),
                ("rate card digest", manifest.rate_card_digest),
                *((("retail policy", manifest.retail_policy_digest),) if manifest.retail_policy_digest else ()),
                ("network policy", manifest.network_policy_digest),
                *((f"image {name}", digest) for name, digest in sorted(manifest.images.items())),
            ),
        ),
        *(FactGroup(f"Arm {arm.id}", _arm(arm, manifest)) for arm in sorted(manifest.arms, key=lambda arm: arm.id)),
        *([FactGroup("Execution", tuple((fact.name, fact.value) for fact in context.facts))] if context.facts else []),
    )


def limitations(context: ReportContext) -> tuple[str, ...]:
    """What this round cannot show, from the context's own facts first."""
    manifest, found = context.manifest, []
    if context.analysis.kind == "rehearsal":
        found.append(
            "The answers came from a scripted model, so success, cost and time say nothing about a harness or a model."
        )
    if context.isolation == "container":
        found.append("The attempts ran in containers without a virtual machine; such results can't be published.")
    found += context.analysis.warnings
    in_process = sorted(task.id for task in manifest.tasks if task.soundness == "in-process")
    if in_process:
        found.append(f"The verifier shares a process with the code under test in: {', '.join(in_process)}.")
    for lane in manifest.lanes:
        if len(lane.observed_models) > 1:
            found.append(f"Lane {lane.id} may answer under {len(lane.observed_models)} model names: it is an alias.")
    repeats = {1: "One repeat shows", 2: "Two repeats show", 3: "Three repeats show"}.get(
        context.analysis.replicates, f"{context.analysis.replicates} repeats show"
    )
    found.append(f"{repeats} instability; they do not give precise estimates of single tasks.")
    found.append("The intervals describe the choice of tasks, and no universal ranking of harnesses follows from them.")
    return (*found, *context.limitations)


def _limits(manifest: RoundManifest) -> tuple[tuple[str, str], ...]:
    sandbox, spend = manifest.sandbox_limits, manifest.spend_limits
    return (
        ("machine", f"{sandbox.vm_cpus} vCPU, {_gib(sandbox.vm_memory_bytes)}"),
        (
            "harness",
            f"{sandbox.cpus} vCPU, {_gib(sandbox.memory_bytes)}, {sandbox.processes:,} processes, "
            f"{_gib(sandbox.disk_bytes)} disk",
        ),
        ("agent time", f"{sandbox.agent_seconds:,} s"),
        (
            "model requests",
            f"{spend.requests_per_attempt} per attempt, {spend.requests_per_logical_run} per logical run",
        ),
        ("model cost", f"${spend.usd_per_attempt} per attempt, ${spend.usd_per_logical_run} per logical run"),
        ("attempts", "3 per logical run at most; a normal answer is never retried"),
    )


def _arm(arm: Arm, manifest: RoundManifest) -> tuple[tuple[str, str], ...]:
    lane = manifest.lane(arm.lane)
    return (
        ("title", arm.title),
        ("harness", f"{arm.harness} {arm.harness_version}"),
        ("run by", "the publisher's own harness" if arm.is_own else "another maker's harness"),
        ("image", f"{arm.image} {arm.image_digest}"),
        ("shims", ", ".join(f"{shim.name} ({shim.status})" for shim in arm.shims) or "none"),
        ("lane", f"{lane.id}: {lane.provider}, {lane.model}, {arm.dialect}, no fallback"),
        *((f"setting {name}", value) for name, value in sorted(arm.settings.items())),
    )


def _gib(count: int) -> str:
    whole, rest = divmod(count, GIB)
    return f"{whole} GiB" if not rest else f"{count // 2**20:,} MiB"
