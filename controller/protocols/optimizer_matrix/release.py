"""What an optimizer-matrix says to machines that quote it, and when it may be released."""

from __future__ import annotations

from controller.domain.aggregate import Metric, count
from controller.protocols.optimizer_matrix.estimates import GateResult, OptimizerAnalysis, Policy
from controller.protocols.optimizer_matrix.ladder import SELECTION


def metrics(analysis: OptimizerAnalysis) -> tuple[Metric, ...]:
    """Every policy, overall and held out, then every gate."""
    found = [metric for policy in analysis.policies for metric in _policy(policy)]
    gates = (analysis.frontier, analysis.funded, analysis.historical)
    return (*found, *(_gate(gate) for gate in gates), _false_passes(analysis))


def release_gates(analysis: OptimizerAnalysis) -> tuple[str, ...]:
    """The steps of the ladder that come before a published matrix, and are not shown.

    The outcome of a gate is none of them: a matrix that fails its target is released like one that meets it.
    """
    steps = {step.name: step for step in analysis.ladder}
    found = []
    if not steps[SELECTION].shown:
        found.append(f"{SELECTION}: no frozen holdout was selected by public randomness before the matrix")
    if analysis.shape != analysis.frozen_shape:
        found.append(f"complete matrix: {analysis.shape.runs} runs are not the frozen {analysis.frozen_shape.runs}")
    return tuple(found)


def _policy(policy: Policy) -> list[Metric]:
    of, held = policy.policy, policy.held_out
    return [
        count(of, "runs", policy.runs),
        count(of, "attempts", policy.attempts),
        count(of, "verified", policy.verified),
        count(of, "failures", policy.failures),
        count(of, "invalid", policy.invalid),
        Metric(of=of, name="cost_total", value=policy.costs.total, shown=policy.costs.shown),
        Metric(of=of, name="cost_median", value=policy.costs.median, shown=policy.costs.shown),
        Metric(of=of, name="cost_per_verified", value=policy.costs.per_verified, shown=policy.costs.shown),
        count(of, "held_out_runs", held.runs),
        count(of, "held_out_verified", held.verified),
        Metric(of=of, name="held_out_cost_median", value=held.costs.median, shown=held.costs.shown),
    ]


def _gate(gate: GateResult) -> Metric:
    told = "passed" if gate.passed else "not passed"
    return Metric(of="matrix", name=gate.name, value="1" if gate.passed else "0", shown=told)


def _false_passes(analysis: OptimizerAnalysis) -> Metric:
    found = analysis.false_passes
    return Metric(
        of="planted cases", name="false_passes", value=str(found.false_passes), low=found.low, high=found.high,
        shown=found.shown,
    )  # fmt: skip
