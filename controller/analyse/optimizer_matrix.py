"""optimizer-matrix: from the frozen matrix to its gates. Pure; nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from controller.analyse.matrix_gates import frontier_result, funded_result, historical_result, prompt_diagnostic
from controller.analyse.policy_matrix import Matrix, MatrixRun, matrix_of
from controller.analyse.policy_results import policy_of
from controller.analyse.wilson import bound_text, wilson
from controller.domain.dataset import Challenge, LogicalRunRow
from controller.domain.exact import decimal_text
from controller.domain.words import numbered
from controller.protocols.optimizer_matrix.estimates import FalsePasses, GateResult, OptimizerAnalysis, Policy
from controller.protocols.optimizer_matrix.ladder import Reached, ladder, step_reached
from controller.protocols.optimizer_matrix.plan import FROZEN_SHAPE, OptimizerPlan

KINDS: tuple[Challenge, ...] = ("tamper", "incomplete", "substitution", "crash")


def analyse_optimizer_matrix(
    rows: Sequence[LogicalRunRow],
    plan: OptimizerPlan | None = None,
    *,
    plan_digest: str | None = None,
    name: str = "dataset.jsonl",
) -> OptimizerAnalysis:
    """Count, compare and say which gates hold.

    The same rows in any order and the same plan give the same result on any machine, but for the lines that it names.
    Raises InvalidInput naming every missing, duplicate or injected run.
    """
    matrix = matrix_of(rows, plan, name=name)
    policies = {policy: policy_of(matrix, policy) for policy in sorted(matrix.plan.policies)}
    roles = matrix.plan.roles
    adaptive, frontier, prompt = (policies[one] for one in (roles.adaptive, roles.frontier, roles.prompt_only))
    planted = false_passes_of(matrix.planted, name)
    valid = frontier_result(frontier)
    funded = funded_result(adaptive, frontier, valid)
    historical = historical_result(adaptive, frontier, prompt, planted, missing_kinds(planted))
    lost, gained = _held_out_changes(matrix)
    frozen = plan is not None and plan_digest == rows[0].manifest_digest
    steps = ladder(
        Reached(
            measured=rows[0].kind == "measured",
            planted_kinds_complete=not missing_kinds(planted),
            false_passes=planted.false_passes,
            calibrated=any(_calibrates(run) for run in matrix.runs),
            frozen_plan=frozen,
            selection=matrix.plan.selection is not None,
            whole_shape=matrix.plan.shape == FROZEN_SHAPE,
            held_out_gate=historical.passed,
        )
    )
    return OptimizerAnalysis(
        round_id=rows[0].round_id,
        kind=rows[0].kind,
        manifest_digest=rows[0].manifest_digest,
        plan_digest=plan_digest,
        shape=matrix.plan.shape,
        frozen_shape=FROZEN_SHAPE,
        currency=matrix.currency,
        billing_basis=matrix.plan.billing_basis,
        policies=tuple(policies.values()),
        frontier=valid,
        funded=funded,
        historical=historical,
        prompt_only=prompt_diagnostic(adaptive, prompt),
        held_out_lost=lost,
        held_out_gained=gained,
        false_passes=planted,
        ladder=steps,
        step_reached=step_reached(steps),
        conclusion=_conclusion(rows[0].kind, funded, historical, step_reached(steps)),
        limitations=_limitations(tuple(policies.values()), matrix, plan, plan_digest, frozen=frozen),
    )


def false_passes_of(planted: Sequence[MatrixRun], name: str) -> FalsePasses:
    """Planted cases that were counted as verified by the same rule as every run of the matrix."""
    false = [run for run in planted if run.verified]
    bounds = wilson(len(false), len(planted))
    told = "no planted case, so nothing is shown"
    if bounds is not None:
        ends = " to ".join(f"{decimal_text(100 * Fraction(end), 1)} %" for end in (bounds.low, bounds.high))
        told = f"{len(false)} of {len(planted)} planted cases passed (95 % interval {ends})"
    return FalsePasses(
        cases=len(planted),
        false_passes=len(false),
        by_kind={
            kind: (
                sum(run.row.challenge == kind for run in planted),
                sum(run.row.challenge == kind for run in false),
            )
            for kind in KINDS
        },
        lines=tuple(f"{name}:{run.line}" for run in false),
        low=None if bounds is None else bound_text(bounds.low),
        high=None if bounds is None else bound_text(bounds.high),
        shown=told,
    )


def missing_kinds(planted: FalsePasses) -> tuple[str, ...]:
    """Kinds of planted case of which there is none: over those, zero false passes would be an empty claim."""
    return tuple(kind for kind, (cases, _) in planted.by_kind.items() if not cases)


def _held_out_changes(matrix: Matrix) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Held-out runs that only always-frontier verified, and those that only adaptive did."""

    def verified(policy: str) -> set[tuple[str, int]]:
        return {(run.row.task, run.row.replicate) for run in matrix.of(policy) if run.held_out and run.verified}

    ours, theirs = verified(matrix.plan.roles.adaptive), verified(matrix.plan.roles.frontier)
    lost, gained = (
        tuple(f"{task}.r{replicate}" for task, replicate in sorted(one)) for one in (theirs - ours, ours - theirs)
    )
    return lost, gained


def _calibrates(run: MatrixRun) -> bool:
    """A run outside the holdouts whose observed model is proven and whose cost is known, whatever its verdict."""
    proofs = run.row.proofs
    return not run.held_out and run.cost is not None and proofs is not None and proofs.observed_model is True


def _conclusion(kind: str, funded: GateResult, historical: GateResult, step: int) -> str:
    mark = "Rehearsal, not a measurement. " if kind == "rehearsal" else ""
    told = "is met" if funded.passed else "is not met"
    gate = "passes" if historical.passed else "does not pass"
    reached = f"the data reach step {step} of the evidence ladder"
    return f"{mark}The funded target {told}; the historical gate {gate}; {reached}."


def _limitations(
    policies: Sequence[Policy], matrix: Matrix, plan: OptimizerPlan | None, plan_digest: str | None, *, frozen: bool
) -> tuple[str, ...]:
    found = []
    if plan is None:
        found.append("No frozen plan was given: whatever the dataset names counts as predeclared.")
    elif plan_digest is not None and not frozen:
        found.append("The dataset does not name the digest of this plan.")
    if matrix.plan.shape != FROZEN_SHAPE:
        found.append("The matrix has not the frozen shape of 120 runs, so it is no preliminary evidence.")
    bases = sorted(set(matrix.plan.billing_basis.values()))
    if len(bases) > 1:
        found.append(f"Costs of different bases are compared as they stand: {', '.join(bases)}.")
    for policy in policies:
        if policy.unproven:
            found.append(
                f"{policy.policy}: {numbered(policy.unproven, 'run')} marked a success, and not counted, for the proof "
                "of the observed model or of the receipt is absent."
            )
        if policy.costs.unknown:
            found.append(f"{policy.policy}: the cost of {policy.costs.unknown} of {policy.runs} runs is unknown.")
    found.append("Runs of one scenario are not independent, and no interval is claimed for completion or cost.")
    return tuple(found)
