"""The decision rules of harness-round, in their order, for one pair of arms. Pure and exact.

1. Success: the Holm-adjusted interval of the paired, task-clustered success-rate difference excludes zero.
2. Cost, if success ties: the success lower bound is above -3 points, cost per success is at least 10 % lower, and the
   paired cost-ratio interval lies entirely below 1.
3. Time, if cost also ties: p90 agent wall time under the same conditions.
4. Otherwise the conclusion is "no reliable difference", even if one bar is taller.

The outcomes of all pairs form a matrix, not a ranking: the rules can be intransitive, so nothing sorts by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from controller.domain.exact import UNBOUNDED, Exact, decimal_text
from controller.domain.record import Record

Rule = Literal["success", "cost", "time", "none"]
NO_RELIABLE_DIFFERENCE: Final = "no reliable difference"
MARGIN_POINTS: Final = 3  # the success lower bound of a more efficient arm is above minus so many percentage points
SAVING_PERCENT: Final = 10  # its cost, or its time, is at least so much lower


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two ends: of a Holm-compatible interval, or of what an observed value may be. None instead: not qualified."""

    low: Exact
    high: Exact


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the rules may look at. Differences are first minus second, ratios first over second."""

    first: str
    second: str
    success_difference: Fraction
    success: Bounds | None
    cost_first: Bounds | None  # per success; both ends are equal
    cost_second: Bounds | None
    cost_ratio: Bounds | None
    time_first: Bounds | None  # p90 wall time; the upper end is unbounded when the rank falls on a censored time
    time_second: Bounds | None
    time_ratio: Bounds | None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Frozen in the manifest before any outcome is seen."""

    margin_points: int = MARGIN_POINTS
    saving_percent: int = SAVING_PERCENT


class Decision(Record):
    """One pair's conclusion. `winner` is null exactly when `rule` is "none"; `reasons` say what each rule found."""

    rule: Rule
    winner: str | None
    loser: str | None
    conclusion: str
    reasons: tuple[str, ...]


def at_least_lower(first: Exact, second: Exact, percent: int) -> bool:
    """True when `first` is at least so many percent below `second`; never below zero, nor infinity below infinity."""
    if first == UNBOUNDED or second == 0:
        return False
    if second == UNBOUNDED:
        return True
    return 100 * first <= (100 - percent) * second


def above_margin(low: Exact, points: int) -> bool:
    """True when a success lower bound is strictly above minus that many percentage points."""
    return low > Fraction(-points, 100)


def decide(evidence: PairEvidence, thresholds: Thresholds | None = None) -> Decision:
    """Apply the rules in order and stop at the first that is met, or at the first that cannot be applied."""
    limits = thresholds or Thresholds()
    success = evidence.success
    if success is None:
        return _none("success cannot be compared: an outcome is unknown, or there are fewer than two tasks")
    if success.low > 0:
        return _won(evidence, "success", first_wins=True, reasons=("success: the interval excludes zero",))
    if success.high < 0:
        return _won(evidence, "success", first_wins=False, reasons=("success: the interval excludes zero",))
    reasons = ["success: the interval includes zero"]
    criteria: tuple[tuple[Rule, Bounds | None, Bounds | None, Bounds | None], ...] = (
        ("cost", evidence.cost_first, evidence.cost_second, evidence.cost_ratio),
        ("time", evidence.time_first, evidence.time_second, evidence.time_ratio),
    )
    for rule, first, second, ratio in criteria:
        if first is None or second is None or ratio is None:
            return _none(*reasons, f"{rule}: not known for every run, so the rules stop here")
        for first_wins in (True, False):
            lower = success.low if first_wins else -success.high
            ours, theirs = (first, second) if first_wins else (second, first)
            below_one = ratio.high < 1 if first_wins else ratio.low > 1
            if (
                above_margin(lower, limits.margin_points)
                and at_least_lower(ours.high, theirs.low, limits.saving_percent)
                and below_one
            ):
                met = f"{rule}: at least {limits.saving_percent} % lower, and its interval lies entirely below 1"
                return _won(evidence, rule, first_wins=first_wins, reasons=(*reasons, met))
        reasons.append(_why_not(rule, success, first, second, limits))
    return _none(*reasons)


def sentence(decision: Decision, evidence: PairEvidence, names: Mapping[str, str] | None = None) -> str:
    """The conclusion as a reader may quote it: the winner first, then the measured difference."""
    known = names or {}
    first, second = known.get(evidence.first, evidence.first), known.get(evidence.second, evidence.second)
    if decision.winner is None or decision.loser is None:
        return f"{first} and {second}: {NO_RELIABLE_DIFFERENCE}."
    winner, loser = known.get(decision.winner, decision.winner), known.get(decision.loser, decision.loser)
    first_wins = decision.winner == evidence.first
    if decision.rule == "success" and evidence.success is not None:
        size = abs(evidence.success_difference)
        low, high = evidence.success.low, evidence.success.high
        low, high = (low, high) if first_wins else (-high, -low)
        return (
            f"{winner} was more successful than {loser}: {_points(size)} percentage points "
            f"(Holm-adjusted 95 % interval {_points(low)} to {_points(high)})."
        )
    ours, theirs = (
        (evidence.cost_first, evidence.cost_second)
        if decision.rule == "cost"
        else (evidence.time_first, evidence.time_second)
    )
    ours, theirs = (ours, theirs) if first_wins else (theirs, ours)
    if ours is None or theirs is None:
        raise ValueError(f"a decision by {decision.rule} needs both values")
    thing = "cost per success" if decision.rule == "cost" else "p90 agent wall time"
    saved = _saving(ours.high, theirs.low)
    return f"{winner} was more efficient than {loser}: its {thing} was {saved} lower, at tied success."


def _points(value: Exact) -> str:
    if isinstance(value, Fraction):
        return ("+" if value > 0 else "") + decimal_text(100 * value, 1).replace("-", "−")
    return "unbounded"


def _saving(ours: Exact, theirs: Exact) -> str:
    if isinstance(ours, Fraction) and isinstance(theirs, Fraction) and theirs > 0:
        return f"{decimal_text(100 * (1 - ours / theirs), 1)} %"
    return "without bound"


def _why_not(rule: Rule, success: Bounds, first: Bounds, second: Bounds, limits: Thresholds) -> str:
    """Which condition failed, for the arm that came nearest: the one with the lower value."""
    first_leads = first.low <= second.low
    lower = success.low if first_leads else -success.high
    ours, theirs = (first, second) if first_leads else (second, first)
    if not at_least_lower(ours.high, theirs.low, limits.saving_percent):
        return f"{rule}: neither is at least {limits.saving_percent} % lower"
    if not above_margin(lower, limits.margin_points):
        return f"{rule}: the success lower bound is not above -{limits.margin_points} points"
    return f"{rule}: the ratio interval is not entirely below 1"


def _won(evidence: PairEvidence, rule: Rule, *, first_wins: bool, reasons: tuple[str, ...]) -> Decision:
    winner, loser = (evidence.first, evidence.second) if first_wins else (evidence.second, evidence.first)
    word = "more successful" if rule == "success" else "more efficient"
    return Decision(
        rule=rule, winner=winner, loser=loser, conclusion=f"{winner} is {word} than {loser}", reasons=reasons
    )


def _none(*reasons: str) -> Decision:
    return Decision(rule="none", winner=None, loser=None, conclusion=NO_RELIABLE_DIFFERENCE, reasons=reasons)
