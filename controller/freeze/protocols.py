"""What each protocol adds to a manifest, and what a plan may ask of a protocol that the engine can't run yet. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.domain.dataset import USD
from controller.domain.ids import Digest
from controller.domain.plan import Arm, TaskEntry
from controller.evidence.corpus import corpus_root
from controller.freeze.plan import RoundPlan
from controller.freeze.sections import CostIndexSection, OptimizerSection
from controller.protocols.cost_index.manifest import sample_sizes
from controller.protocols.harness_round.manifest import AnalysisPlan, all_pairs
from controller.protocols.optimizer_matrix.manifest import InputSet, PolicyEntry


def protocol_fields(
    plan: RoundPlan,
    tasks: Sequence[TaskEntry],
    arms: Sequence[Arm],
    *,
    calibration: Sequence[TaskEntry],
    pilot: Sequence[TaskEntry],
    fixtures: Mapping[str, Digest],
) -> dict[str, Any]:
    """The fields of the protocol's manifest beside those of every round. Tasks and arms are in byte order."""
    if plan.cost_index is not None:
        return {
            "boundary": plan.cost_index.boundary,
            "uncertainty": plan.cost_index.uncertainty,
            "sample_sizes": sample_sizes(tasks, plan.replicates),
            "fixtures": dict(fixtures),
        }
    if plan.optimizer_matrix is not None:
        section = plan.optimizer_matrix
        return {
            "candidates": tuple(sorted(section.candidates, key=lambda candidate: candidate.id)),
            "policies": tuple(PolicyEntry(arm=arm, routing=section.routing[arm]) for arm in sorted(section.routing)),
            "roles": section.roles,
            "strata": tuple(sorted({task.stratum for task in tasks})),
            "probe": section.probe,
            "calibration": _input_set(calibration),
            "pilot": _input_set(pilot),
            "selection": section.selection,
        }
    return {"analysis": AnalysisPlan(comparisons=all_pairs([arm.id for arm in arms]))}


def _input_set(tasks: Sequence[TaskEntry]) -> InputSet:
    ordered = tuple(sorted(tasks, key=lambda task: task.id))
    return InputSet(root=corpus_root(ordered), tasks=ordered)


def candidate_lanes(plan: RoundPlan) -> set[str]:
    """Lanes of candidate executors, which need not be an arm's."""
    return {candidate.lane for candidate in plan.optimizer_matrix.candidates} if plan.optimizer_matrix else set()


def engine_problems(plan: RoundPlan) -> Iterator[str]:
    """What would have to be pretended: each is refused, as `field: fault`."""
    if plan.cost_index is not None:
        yield from _uncountable(plan.cost_index)
    if plan.optimizer_matrix is not None:
        yield from _unroutable(plan.optimizer_matrix)


def _uncountable(section: CostIndexSection) -> Iterator[str]:
    boundary = section.boundary
    for kind in boundary.counted:
        if kind != "model":
            yield (
                f"cost_index.boundary.counted: {kind} charges of a round are not settled by this engine, so no cell "
                "would have a cost; name them under `uncounted` with the reason"
            )
    if boundary.currency != USD and USD not in {rule.from_currency for rule in boundary.conversions}:
        yield f"cost_index.boundary.conversions: charges are metered in {USD}; name the rule that converts them"


def _unroutable(section: OptimizerSection) -> Iterator[str]:
    for arm, routing in sorted(section.routing.items()):
        if routing != "fixed":
            yield (
                f"optimizer_matrix.routing.{arm}: {routing!r} chooses among several lanes at run time, and this engine "
                "gives an arm one lane; it can't run this policy"
            )
