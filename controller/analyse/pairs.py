"""The planned comparisons: three Holm families over the same pairs, and one decision per pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from controller.analyse.arms import QUANTILES, ArmDraws, quantile_value
from controller.analyse.beside import beside
from controller.analyse.draws import quantile_ratio, ratio_per_success
from controller.analyse.holm import HolmInterval, holm_intervals
from controller.analyse.plan import PlanInputs
from controller.analyse.replicates import Replicates, WholeReplicates
from controller.domain.exact import UNBOUNDED, Exact, exact_text
from controller.protocols.harness_round.decision import Bounds, Criterion, PairEvidence, Thresholds, decide, sentence
from controller.protocols.harness_round.estimates import Comparison, PairAnalysis
from controller.protocols.harness_round.show import p_shown, shown

_NULLS: Final[dict[Criterion, Fraction]] = {"success": Fraction(0), "cost": Fraction(1), "time": Fraction(1)}
_P90: Final = "wall_ms_p90"


@dataclass(frozen=True, slots=True)
class _Tested:
    """One pair under one criterion before Holm: the observed value, its replicates, or why there are none."""

    value: Exact | None
    replicates: Replicates | None
    reason: str


def pair_analyses(draws: Mapping[str, ArmDraws], plan: PlanInputs, tasks: int) -> tuple[PairAnalysis, ...]:
    """Every planned pair, in the order of the plan."""
    pairs = [(draws[first], draws[second]) for first, second in plan.comparisons]
    tested: dict[Criterion, list[_Tested]] = {"success": [], "cost": [], "time": []}
    for first, second in pairs:
        tested["success"].append(_success(first, second, tasks))
        tested["cost"].append(_cost(first, second, tasks))
        tested["time"].append(_time(first, second, tasks))
    families = {
        criterion: holm_intervals([one.replicates for one in family], resamples=plan.resamples, null=_NULLS[criterion])
        for criterion, family in tested.items()
    }
    analyses = []
    for index, (first, second) in enumerate(pairs):
        holm = {criterion: family[index] for criterion, family in families.items()}
        facts = {criterion: family[index] for criterion, family in tested.items()}
        evidence = _evidence(first, second, holm, facts)
        decision = decide(evidence, Thresholds(plan.margin_points, plan.saving_percent))
        analyses.append(
            PairAnalysis(
                first=first.table.arm,
                second=second.table.arm,
                success=_comparison("success", facts["success"], holm["success"]),
                cost=_comparison("cost", facts["cost"], holm["cost"]),
                time=_comparison("time", facts["time"], holm["time"]),
                decision=decision,
                sentence=sentence(decision, evidence),
                beside=beside(
                    [a - b for a, b in zip(first.table.successes, second.table.successes, strict=True)],
                    {criterion: fact.replicates for criterion, fact in facts.items()},
                    repeats=plan.replicates,
                    pairs=len(pairs),
                ),
            )
        )
    return tuple(analyses)


def _doubt(first: ArmDraws, second: ArmDraws, tasks: int) -> str:
    """Why the pair is not qualified for any comparison; empty when it is."""
    if tasks < 2:
        return "fewer than two tasks"
    unknown = [f"{arm.table.arm} has {arm.table.unknown}" for arm in (first, second) if arm.table.unknown]
    return f"invalid or missing runs: {', '.join(unknown)}" if unknown else ""


def _success(first: ArmDraws, second: ArmDraws, tasks: int) -> _Tested:
    unit = Fraction(1, len(first.table.all_runs))
    value = (first.success_count - second.success_count) * unit
    doubt = _doubt(first, second, tasks)
    if doubt:
        return _Tested(value, None, doubt)
    return _Tested(value, WholeReplicates(first.successes - second.successes, unit), "")


def _cost(first: ArmDraws, second: ArmDraws, tasks: int) -> _Tested:
    doubt = _doubt(first, second, tasks)
    if first.cost is None or second.cost is None:
        return _Tested(None, None, doubt or "the cost of a logical run is unknown")
    value = _ratio(first.cost_per_success, second.cost_per_success)
    if doubt:
        return _Tested(value, None, doubt)
    replicates = ratio_per_success(first.cost.sums, first.successes, second.cost.sums, second.successes)
    return _Tested(value, replicates, "")


def _time(first: ArmDraws, second: ArmDraws, tasks: int) -> _Tested:
    ours, theirs = first.quantiles[_P90], second.quantiles[_P90]
    doubt = _doubt(first, second, tasks)
    if ours is None or theirs is None:
        return _Tested(None, None, doubt or "no logical run of an arm has a time")
    (our_value, our_censored), (their_value, their_censored) = (
        quantile_value(one, QUANTILES["p90"]) for one in (ours, theirs)
    )
    if our_censored or their_censored:
        value, reason = None, "the p90 of an arm falls on a time that was cut short, so the ratio has no single value"
    else:
        value, reason = _ratio(our_value, their_value), ""
    return _Tested(value, None if doubt else quantile_ratio(ours, theirs), doubt or reason)


def _ratio(first: Exact | None, second: Exact | None) -> Exact | None:
    """first / second with infinities: infinity over infinity and 0/0 are undefined, never a tie and never a saving."""
    if first is None or second is None or (first == UNBOUNDED and second == UNBOUNDED) or first == second == 0:
        return None
    if first == UNBOUNDED or second == 0:
        return UNBOUNDED
    return Fraction(0) if second == UNBOUNDED else Fraction(first) / Fraction(second)


def _evidence(
    first: ArmDraws, second: ArmDraws, holm: Mapping[Criterion, HolmInterval], facts: Mapping[Criterion, _Tested]
) -> PairEvidence:
    def bounds(one: HolmInterval) -> Bounds | None:
        return None if one.low is None or one.high is None else Bounds(one.low, one.high)

    difference = facts["success"].value
    return PairEvidence(
        first=first.table.arm,
        second=second.table.arm,
        success_difference=difference if isinstance(difference, Fraction) else Fraction(0),
        success=bounds(holm["success"]),
        cost_first=_cost_bounds(first),
        cost_second=_cost_bounds(second),
        cost_ratio=bounds(holm["cost"]),
        time_first=_time_bounds(first),
        time_second=_time_bounds(second),
        time_ratio=bounds(holm["time"]),
    )


def _cost_bounds(arm: ArmDraws) -> Bounds | None:
    value = arm.cost_per_success
    return None if value is None else Bounds(value, value)


def _time_bounds(arm: ArmDraws) -> Bounds | None:
    drawn = arm.quantiles[_P90]
    if drawn is None:
        return None
    value, at_least = quantile_value(drawn, QUANTILES["p90"])
    return Bounds(value, UNBOUNDED if at_least else value)


def _comparison(criterion: Criterion, fact: _Tested, holm: HolmInterval) -> Comparison:
    unit: Literal["share", "ratio"] = "share" if criterion == "success" else "ratio"
    signed = criterion == "success"
    nearest = None if holm.at_most is None or holm.at_least is None else min(holm.at_most, holm.at_least)
    return Comparison(
        criterion=criterion,
        unit=unit,
        value=exact_text(fact.value),
        value_shown=shown(fact.value, unit, signed=signed),
        low=exact_text(holm.low),
        high=exact_text(holm.high),
        low_shown=shown(holm.low, unit, signed=signed),
        high_shown=shown(holm.high, unit, signed=signed),
        p=str(holm.p),
        p_adjusted=str(holm.adjusted),
        p_adjusted_shown=p_shown(holm.adjusted),
        level=str(holm.level),
        k=holm.k,
        replicates_at_or_below=holm.at_most,
        replicates_at_or_above=holm.at_least,
        infinite_replicates=0 if fact.replicates is None else fact.replicates.infinite,
        undefined_replicates=0 if fact.replicates is None else fact.replicates.undefined,
        rejected=holm.rejected,
        qualified=fact.replicates is not None,
        seed_sensitive=nearest is not None and seed_sensitive(nearest, holm.k),
        reason=fact.reason,
    )


def seed_sensitive(nearest: int, k: int) -> bool:
    """True when another seed might decide otherwise: |c - (k - 1/2)| <= 3 sqrt(k), c being the smaller tail count.

    The test rejects while c < k, and the standard error of a count near k is about its root.
    """
    return (2 * nearest - 2 * k + 1) ** 2 <= 36 * k
