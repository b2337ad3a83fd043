"""The decision rules of harness-round for one pair: success, then cost, then time, else no reliable difference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Dict, List, Optional, Tuple

from .shown import INFINITE, Exact, apart, exact_text

Ends = Tuple[Exact, Exact]
NONE = "no reliable difference"
THINGS = {"cost": "cost per success", "time": "p90 agent wall time"}


@dataclass(frozen=True)
class Evidence:
    """All that the rules may look at. None: not known, or not qualified. `sizes` and `ratios` are by criterion."""

    first: str
    second: str
    difference: Fraction
    success: Optional[Ends]
    sizes: Dict[str, Tuple[Optional[Ends], Optional[Ends]]]
    ratios: Dict[str, Optional[Ends]]
    margin_points: int
    saving_percent: int


def decide(evidence: Evidence) -> Dict[str, Any]:
    """The rules in order, up to the first that is met or can't be applied."""
    findings = [_success(evidence)]
    for rule in ("cost", "time"):
        if findings[-1]["status"] == "tie":
            findings.append(_saving(rule, evidence))
        else:
            findings.append(_finding(rule, "not reached", f"{rule}: not asked"))
    met = [finding for finding in findings if finding["status"] == "met"]
    if not met:
        return {"rule": "none", "winner": None, "loser": None, "conclusion": NONE, "findings": findings}
    rule, winner = met[0]["rule"], met[0]["arm"]
    loser = evidence.second if winner == evidence.first else evidence.first
    word = "more successful" if rule == "success" else "more efficient"
    conclusion = f"{winner} is {word} than {loser}"
    return {"rule": rule, "winner": winner, "loser": loser, "conclusion": conclusion, "findings": findings}


def _success(evidence: Evidence) -> Dict[str, Any]:
    if evidence.success is None:
        told = "success: cannot be compared: an outcome is unknown, or there are fewer than two tasks"
        return _finding("success", "not qualified", told)
    low, high = evidence.success
    first_leads = low > 0 or (high >= 0 and evidence.difference >= 0)
    lower = low if first_leads else -high
    excludes = lower > 0
    told = (
        f"success: the interval {'excludes' if excludes else 'includes'} zero ({points(low)} to {points(high)} points)"
    )
    return _finding(
        "success",
        "met" if excludes else "tie",
        told,
        evidence.first if first_leads else evidence.second,
        [_condition("success lower bound", lower, ">", Fraction(0), excludes)],
    )


def _saving(rule: str, evidence: Evidence) -> Dict[str, Any]:
    first, second = evidence.sizes[rule]
    ratio, success = evidence.ratios[rule], evidence.success
    if first is None or second is None or ratio is None or success is None:
        return _finding(rule, "not qualified", f"{rule}: not known for every run, so the rules stop here")
    first_leads = first[0] < second[0] or (first[0] == second[0] and ratio[0] <= 1)
    lower = success[0] if first_leads else -success[1]
    (_, ours), other = (first, second) if first_leads else (second, first)
    theirs, reach = other[0], ratio if first_leads else inverse(ratio)
    percent, margin = evidence.saving_percent, Fraction(-evidence.margin_points, 100)
    asked = theirs if theirs == INFINITE else theirs * Fraction(100 - percent, 100)
    saves = ours != INFINITE and theirs != 0 and (theirs == INFINITE or ours <= asked)
    below, holds = reach[1] < 1, lower > margin
    if not (saves and below):
        status = "tie"
        told = "the ratio interval is not entirely below 1" if saves else f"neither is at least {percent} % lower"
    elif holds:
        status, told = "met", f"at least {percent} % lower, and its interval lies entirely below 1"
    else:
        status = "no tie"
        told = f"the success lower bound is not above -{evidence.margin_points} points, so the rules stop here"
    arm = evidence.first if first_leads else evidence.second
    numbers = (
        f"success lower bound {points(lower, margin)} points; {saving(ours, other, percent)} lower; "
        f"ratio interval {_ratio(reach[0])} to {_ratio(reach[1])}"
    )
    conditions = [
        _condition("success lower bound", lower, ">", margin, holds),
        _condition(THINGS[rule], ours, "<=", asked, saves),
        _condition(f"upper end of the {rule} ratio", reach[1], "<", Fraction(1), below),
    ]
    return _finding(rule, status, f"{rule}: {told} ({arm}: {numbers})", arm, conditions)


def sentence(decision: Dict[str, Any], evidence: Evidence) -> str:
    """The conclusion as it may be quoted."""
    winner, loser, rule = decision["winner"], decision["loser"], decision["rule"]
    if winner is None:
        return f"{evidence.first} and {evidence.second}: {NONE}."
    first_wins = winner == evidence.first
    if rule == "success" and evidence.success is not None:
        low, high = evidence.success if first_wins else (-evidence.success[1], -evidence.success[0])
        return (
            f"{winner} was more successful than {loser}: {points(abs(evidence.difference))} percentage points "
            f"(Holm-adjusted 95 % interval {points(low)} to {points(high)})."
        )
    first, second = evidence.sizes[rule]
    ratio = evidence.ratios[rule]
    assert first is not None and second is not None and ratio is not None
    (_, ours), other = (first, second) if first_wins else (second, first)
    reach = ratio if first_wins else inverse(ratio)
    if other[0] == INFINITE:
        told = f"its {THINGS[rule]} was finite and the other's without bound"
    else:
        told = f"its {THINGS[rule]} was {saving(ours, other, 0)} lower"
    ends = f"Holm-adjusted 95 % interval of the ratio {_ratio(reach[0])} to {_ratio(reach[1])}"
    return f"{winner} was more efficient than {loser}: {told}, at tied success ({ends})."


def inverse(ratio: Ends) -> Ends:
    """The ends of the ratio the other way round."""
    low, high = (INFINITE if end == 0 else Fraction(0) if not isinstance(end, Fraction) else 1 / end for end in ratio)
    return high, low


def points(value: Exact, bound: Fraction = Fraction(0)) -> str:
    """A share as signed percentage points."""
    if not isinstance(value, Fraction):
        return "unbounded" if value > 0 else "−unbounded"
    return ("+" if value > 0 else "") + apart(100 * value, 100 * bound, 1).replace("-", "−")


def saving(ours: Exact, theirs: Ends, percent: int) -> str:
    """How much lower ours is; at least so much, when theirs is only a lower bound."""
    least, most = theirs
    if isinstance(ours, Fraction) and isinstance(least, Fraction) and least > 0:
        size = apart(100 * (1 - ours / least), Fraction(percent), 1).replace("-", "−") + " %"
        return f"at least {size}" if most > least else size
    return "without bound" if least == INFINITE != ours else "not measurably"


def _ratio(value: Exact) -> str:
    return apart(value, Fraction(1), 3) if isinstance(value, Fraction) else "unbounded"


def _finding(
    rule: str, status: str, told: str, arm: Optional[str] = None, conditions: Optional[List[Dict[str, Any]]] = None
) -> Dict[str, Any]:
    return {"rule": rule, "status": status, "arm": arm, "conditions": conditions or [], "sentence": told}


def _condition(quantity: str, value: Exact, relation: str, bound: Exact, met: bool) -> Dict[str, Any]:
    return {
        "quantity": quantity,
        "value": exact_text(value),
        "relation": relation,
        "bound": exact_text(bound),
        "met": met,
    }
