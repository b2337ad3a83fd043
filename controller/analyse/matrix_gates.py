"""The gates of the matrix with the numbers that decided them. The rules stand in the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from controller.analyse.policy_results import exact_cost
from controller.domain.exact import exact_text
from controller.protocols.optimizer_matrix import gates
from controller.protocols.optimizer_matrix.estimates import Condition, FalsePasses, GateResult, Policy

NO_BASELINE = "always-frontier is no valid baseline, so nothing is compared with it"


def frontier_result(frontier: Policy) -> GateResult:
    """Always-frontier is valid only if it verifies at least 80 % overall and 70 % in every stratum."""
    cells = {one.stratum: one.runs for one in frontier.strata}
    found = gates.frontier_validity({one.stratum: one.verified for one in frontier.strata}, cells)
    asked = gates.needed(gates.ABSOLUTE_PERCENT, frontier.runs)
    conditions = [
        _condition("overall", found.overall, f"{frontier.verified} of {frontier.runs} verified, {asked} needed")
    ]
    for one in frontier.strata:
        asked = gates.needed(gates.STRATUM_PERCENT, one.runs)
        told = f"{one.verified} of {one.runs} verified, {asked} needed"
        conditions.append(_condition(f"stratum {one.stratum}", found.strata[one.stratum], told))
    return GateResult(name="frontier-validity", passed=found.valid, conditions=tuple(conditions))


def funded_result(adaptive: Policy, frontier: Policy, validity: GateResult) -> GateResult:
    """80 % absolute, 95 % of a valid frontier's verified rate, 30 % lower total cost. Prompt-only has no part in it."""
    ours, theirs = exact_cost(adaptive.costs.total), exact_cost(frontier.costs.total)
    found = gates.funded_gate(
        adaptive.verified, frontier.verified, adaptive.runs, adaptive_cost=ours, frontier_cost=theirs
    )
    asked = gates.needed(gates.ABSOLUTE_PERCENT, adaptive.runs)
    relative = f"100 x {adaptive.verified} against {gates.RELATIVE_PERCENT} x {frontier.verified}"
    valid = validity.passed
    conditions = (
        _condition(
            "absolute-completion", found.absolute_80, f"{adaptive.verified} of {adaptive.runs} verified, {asked} needed"
        ),
        _condition("valid-frontier", valid, "see frontier-validity"),
        _condition("relative-completion", found.relative_95 if valid else None, relative if valid else NO_BASELINE),
        _condition(
            "total-cost",
            found.saves_30 if valid else None,
            _saving(ours, theirs, gates.FUNDED_SAVING_PERCENT) if valid else NO_BASELINE,
        ),
    )
    return GateResult(name="funded-target", passed=found.passed and valid, conditions=conditions)


def historical_result(
    adaptive: Policy, frontier: Policy, prompt: Policy, planted: FalsePasses, missing_kinds: Sequence[str]
) -> GateResult:
    """The five conditions of the smaller gate that was frozen for the 120-cell matrix."""
    ours, theirs = (exact_cost(one.held_out.costs.median) for one in (adaptive, frontier))
    median = gates.saves(ours, theirs, gates.HISTORICAL_SAVING_PERCENT) if adaptive.held_out.runs else None
    completion = f"{adaptive.held_out.verified} held-out runs verified against {frontier.held_out.verified}"
    tie = adaptive.verified == prompt.verified
    compared = [adaptive.held_out.costs, frontier.held_out.costs, *((adaptive.costs, prompt.costs) if tie else ())]
    unknown = sum(costs.unknown for costs in compared)
    zero = planted.false_passes == 0 if planted.false_passes or not missing_kinds else None
    told = planted.shown if not missing_kinds else f"{planted.shown}; no planted case of: {', '.join(missing_kinds)}"
    against = _against_prompt(adaptive, prompt)
    conditions = (
        _condition(
            "held-out-median-cost",
            median,
            _saving(ours, theirs, gates.HISTORICAL_SAVING_PERCENT) if adaptive.held_out.runs else "no held-out run",
        ),
        _condition(
            "no-held-out-loss",
            adaptive.held_out.verified >= frontier.held_out.verified if adaptive.held_out.runs else None,
            completion,
        ),
        _condition("beats-prompt-only", against.passed, _prompt_detail(adaptive, prompt)),
        _condition(
            "known-costs",
            unknown == 0,
            f"{unknown} unknown costs among the compared runs; no saving is computed from one",
        ),
        _condition("zero-false-passes", zero, told),
    )
    return GateResult(
        name="historical-gate", passed=all(one.passed is True for one in conditions), conditions=conditions
    )


def prompt_diagnostic(adaptive: Policy, prompt: Policy) -> tuple[Condition, ...]:
    """Adaptive beside prompt-only: reported, and no part of the funded target."""
    found = _against_prompt(adaptive, prompt)
    return (
        _condition("more-completions", found.beats, f"{adaptive.verified} verified against {prompt.verified}"),
        _condition("as-many-completions", found.tied, f"{adaptive.verified} verified against {prompt.verified}"),
        _condition("lower-effective-cost", found.cheaper, _effective(adaptive, prompt)),
    )


def _against_prompt(adaptive: Policy, prompt: Policy) -> gates.AgainstPrompt:
    return gates.against_prompt(
        adaptive.verified,
        prompt.verified,
        adaptive_cost=exact_cost(adaptive.costs.total),
        prompt_cost=exact_cost(prompt.costs.total),
    )


def _prompt_detail(adaptive: Policy, prompt: Policy) -> str:
    told = f"{adaptive.verified} verified against {prompt.verified}"
    return f"{told}; {_effective(adaptive, prompt)}" if adaptive.verified == prompt.verified else told


def _effective(adaptive: Policy, prompt: Policy) -> str:
    ours, theirs = (one.costs.per_verified or "unknown" for one in (adaptive, prompt))
    return f"cost per verified completion {ours} against {theirs}"


def _saving(cost: Fraction | None, baseline: Fraction | None, percent: int) -> str:
    if cost is None or baseline is None:
        return "a cost is unknown, so no saving is computed"
    return f"100 x {exact_text(cost)} against {100 - percent} x {exact_text(baseline)}"


def _condition(name: str, passed: bool | None, detail: str) -> Condition:
    return Condition(name=name, passed=passed, detail=detail)
