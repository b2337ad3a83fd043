"""The planned comparisons: three Holm families over the same pairs, and one decision per pair."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import beside
from .decision import Ends, Evidence, decide, sentence
from .drawn_arm import DrawnArm
from .harness_round import HarnessRound
from .holm import Tested, family
from .replicates import INFINITY, ZERO, Pair, Replicates, quotient
from .shown import INFINITE, Exact, exact_text, p_shown, shown

NULLS = {"success": 0, "cost": 1, "time": 1}
P90 = "wall_ms_p90"


@dataclass(frozen=True)
class Observed:
    """One pair under one criterion: its value, its replicates, or why there are none."""

    value: Optional[Exact]
    replicates: Optional[Replicates]
    reason: str


def pair_records(arms: Dict[str, DrawnArm], plan: HarnessRound, replicates: int) -> List[Dict[str, Any]]:
    """Every planned pair in the order of the plan."""
    pairs = [(arms[first], arms[second]) for first, second in plan.comparisons]
    observed = [{"success": _success(*pair), "cost": _cost(*pair), "time": _time(*pair)} for pair in pairs]
    holm = {
        criterion: family([one[criterion].replicates for one in observed], plan.resamples, null)
        for criterion, null in NULLS.items()
    }
    records = []
    for index, (first, second) in enumerate(pairs):
        seen = observed[index]
        tested = {criterion: found[index] for criterion, found in holm.items()}
        evidence = _evidence(first, second, seen, tested, plan)
        decision = decide(evidence)
        records.append(
            {
                "first": first.arm.name,
                "second": second.arm.name,
                **{name: _comparison(name, seen[name], tested[name]) for name in NULLS},
                "decision": decision,
                "sentence": sentence(decision, evidence),
                "beside": beside.columns(
                    [a - b for a, b in zip(first.arm.successes, second.arm.successes)],
                    {name: one.replicates for name, one in seen.items()},
                    repeats=replicates,
                    pairs=len(pairs),
                ),
            }
        )
    return records


def _doubt(first: DrawnArm, second: DrawnArm) -> str:
    """Why the pair qualifies for no comparison; empty when it does."""
    if len(first.arm.runs) < 2:
        return "fewer than two tasks"
    unknown = [f"{drawn.arm.name} has {drawn.arm.unknown}" for drawn in (first, second) if drawn.arm.unknown]
    return f"invalid or missing runs: {', '.join(unknown)}" if unknown else ""


def _success(first: DrawnArm, second: DrawnArm) -> Observed:
    runs, doubt = len(first.arm.all_runs), _doubt(first, second)
    value = Fraction(first.successes.total - second.successes.total, runs)
    if doubt:
        return Observed(value, None, doubt)
    differences = [(a - b, runs) for a, b in zip(first.successes.sums, second.successes.sums)]
    return Observed(value, Replicates(differences), "")


def _cost(first: DrawnArm, second: DrawnArm) -> Observed:
    doubt = _doubt(first, second)
    ours, theirs = first.per_success("cost"), second.per_success("cost")
    if ours is None or theirs is None:
        return Observed(None, None, doubt or "the cost of a logical run is unknown")
    one = Fraction(1)
    value = _ratio(first.value_per_success("cost", one), second.value_per_success("cost", one))
    if doubt:
        return Observed(value, None, doubt)
    low, high = zip(*map(quotient, ours, theirs))
    return Observed(value, Replicates(low, high), "")


def _time(first: DrawnArm, second: DrawnArm) -> Observed:
    doubt = _doubt(first, second)
    ours, theirs = first.quantiles.get(P90), second.quantiles.get(P90)
    if ours is None or theirs is None:
        return Observed(None, None, doubt or "no logical run of an arm has a time")
    if ours.is_lower_bound or theirs.is_lower_bound:
        value: Optional[Exact] = None
        reason = "the p90 of an arm falls on a time that was cut short, so the ratio has no single value"
    else:
        value, reason = _ratio(Fraction(ours.value), Fraction(theirs.value)), ""
    if doubt:
        return Observed(value, None, doubt)
    pairs = [_time_ratio(a, b, ours.cut_from, theirs.cut_from) for a, b in zip(ours.drawn, theirs.drawn)]
    low, high = zip(*pairs)
    return Observed(value, Replicates(low, high), reason)


def _time_ratio(
    ours: Optional[int], theirs: Optional[int], our_cut: Optional[int], their_cut: Optional[int]
) -> Tuple[Pair, Pair]:
    """A time that is a lower bound, or of nothing, may be anything up to infinity."""
    low, high = quotient((ours or 0, 1), (theirs or 0, 1))
    if theirs is None or (their_cut is not None and theirs >= their_cut):
        low = ZERO
    if ours is None or (our_cut is not None and ours >= our_cut):
        high = INFINITY
    return low, high


def _ratio(first: Optional[Exact], second: Optional[Exact]) -> Optional[Exact]:
    """first / second; None for infinity over infinity and for 0/0."""
    if first is None or second is None or first == second == INFINITE or first == second == 0:
        return None
    if first == INFINITE or second == 0:
        return INFINITE
    return Fraction(0) if second == INFINITE else Fraction(first) / Fraction(second)


def _evidence(
    first: DrawnArm, second: DrawnArm, seen: Dict[str, Observed], tested: Dict[str, Tested], plan: HarnessRound
) -> Evidence:
    difference = seen["success"].value
    assert isinstance(difference, Fraction)
    return Evidence(
        first=first.arm.name,
        second=second.arm.name,
        difference=difference,
        success=_ends(tested["success"]),
        sizes={"cost": (_cost_ends(first), _cost_ends(second)), "time": (_time_ends(first), _time_ends(second))},
        ratios={"cost": _ends(tested["cost"]), "time": _ends(tested["time"])},
        margin_points=plan.margin_points,
        saving_percent=plan.saving_percent,
    )


def _ends(one: Tested) -> Optional[Ends]:
    return None if one.low is None or one.high is None else (one.low, one.high)


def _cost_ends(drawn: DrawnArm) -> Optional[Ends]:
    value = drawn.value_per_success("cost", drawn.arm.money_unit)
    return None if value is None else (value, value)


def _time_ends(drawn: DrawnArm) -> Optional[Ends]:
    found = drawn.quantiles.get(P90)
    if found is None:
        return None
    return Fraction(found.value), INFINITE if found.is_lower_bound else Fraction(found.value)


def _comparison(criterion: str, seen: Observed, tested: Tested) -> Dict[str, Any]:
    unit, signed = ("share", True) if criterion == "success" else ("ratio", False)
    counts: Sequence[int] = [count for count in (tested.at_most, tested.at_least) if count is not None]
    is_sensitive = bool(counts) and (2 * min(counts) - 2 * tested.k + 1) ** 2 <= 36 * tested.k
    return {
        "criterion": criterion,
        "unit": unit,
        "value": exact_text(seen.value),
        "value_shown": shown(seen.value, unit, signed=signed),
        "low": exact_text(tested.low),
        "high": exact_text(tested.high),
        "low_shown": shown(tested.low, unit, signed=signed),
        "high_shown": shown(tested.high, unit, signed=signed),
        "p": str(tested.p),
        "p_adjusted": str(tested.adjusted),
        "p_adjusted_shown": p_shown(tested.adjusted),
        "level": str(tested.level),
        "k": tested.k,
        "replicates_at_or_below": tested.at_most,
        "replicates_at_or_above": tested.at_least,
        "infinite_replicates": seen.replicates.infinite if seen.replicates else 0,
        "undefined_replicates": seen.replicates.doubtful if seen.replicates else 0,
        "rejected": tested.rejected,
        "qualified": seen.replicates is not None,
        "seed_sensitive": is_sensitive,
        "reason": seen.reason,
    }
