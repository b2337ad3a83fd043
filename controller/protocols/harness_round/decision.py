"""The decision rules of harness-round, in their order, for one pair of arms. Pure and exact.

1. Success: the Holm-adjusted interval of the paired, task-clustered success-rate difference excludes zero.
2. Cost, if success ties: the success lower bound is above -3 points, cost per success is at least 10 % lower, and the
   paired cost-ratio interval lies entirely below 1.
3. Time, if cost also ties: p90 agent wall time under the same conditions.
4. Otherwise the conclusion is "no reliable difference", even if one bar is taller.

Cost ties when neither arm meets the 10 %-and-interval part. Where one does and only its success bound forbids the
claim, cost does not tie: the rules stop there, so that an arm which is reliably dearer never wins by its time.

The outcomes of all pairs form a matrix, not a ranking: the rules can be intransitive, so nothing sorts by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from controller.domain.exact import UNBOUNDED, Exact, decimal_text, exact_text
from controller.domain.record import Record

Criterion = Literal["success", "cost", "time"]
TieBreak = Literal["cost", "time"]  # a criterion that is asked when success ties
Rule = Literal[Criterion, "none"]
NO_RELIABLE_DIFFERENCE: Final = "no reliable difference"
MARGIN_POINTS: Final = 3  # the success lower bound of a more efficient arm is above minus so many percentage points
SAVING_PERCENT: Final = 10  # its cost, or its time, is at least so much lower
_THINGS: Final[Mapping[Rule, str]] = {"cost": "cost per success", "time": "p90 agent wall time"}
_PLACES_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two ends: of a Holm-compatible interval, or of what an observed value may be. None instead: not qualified."""

    low: Exact
    high: Exact


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the rules may look at, and all of it. Differences are first minus second, ratios first over second."""

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


class Condition(Record):
    """One comparison that a rule made: `value relation bound`. Both are exact strings, in the unit of the quantity."""

    quantity: str
    value: str
    relation: Literal[">", "<", "<="]
    bound: str
    met: bool


class RuleFinding(Record):
    """What one rule found. `arm` is the winner, or else the arm that came nearest; `conditions` are stated for it.

    met: decides the pair. tie: the next rule is asked. no tie: the saving is reliable, but the success bound forbids
    the claim, and the rules stop. not qualified: something is unknown, and the rules stop. not reached: never asked.
    """

    rule: Criterion
    status: Literal["met", "tie", "no tie", "not qualified", "not reached"]
    arm: str | None = None
    conditions: tuple[Condition, ...] = ()
    sentence: str


class Decision(Record):
    """One pair's conclusion. `winner` is null exactly when `rule` is "none"; `findings` holds each rule, in order."""

    rule: Rule
    winner: str | None
    loser: str | None
    conclusion: str
    findings: tuple[RuleFinding, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The sentence of every rule that was asked."""
        return tuple(finding.sentence for finding in self.findings if finding.status != "not reached")


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
    findings = [_success_finding(evidence)]
    for rule in ("cost", "time"):
        if findings[-1].status == "tie":
            findings.append(_saving_finding(rule, evidence, limits))
        else:
            findings.append(RuleFinding(rule=rule, status="not reached", sentence=f"{rule}: not asked"))
    met = next((finding for finding in findings if finding.status == "met"), None)
    if met is None or met.arm is None:
        return Decision(
            rule="none", winner=None, loser=None, conclusion=NO_RELIABLE_DIFFERENCE, findings=tuple(findings)
        )
    loser = evidence.second if met.arm == evidence.first else evidence.first
    word = "more successful" if met.rule == "success" else "more efficient"
    return Decision(
        rule=met.rule,
        winner=met.arm,
        loser=loser,
        conclusion=f"{met.arm} is {word} than {loser}",
        findings=tuple(findings),
    )


def _success_finding(evidence: PairEvidence) -> RuleFinding:
    interval = evidence.success
    if interval is None:
        unknown = "success: cannot be compared: an outcome is unknown, or there are fewer than two tasks"
        return RuleFinding(rule="success", status="not qualified", sentence=unknown)
    first_leads = interval.low > 0 or (interval.high >= 0 and evidence.success_difference >= 0)
    lower = interval.low if first_leads else -interval.high
    excludes = lower > 0
    ends = f"{_points(interval.low, Fraction(0))} to {_points(interval.high, Fraction(0))} points"
    return RuleFinding(
        rule="success",
        status="met" if excludes else "tie",
        arm=evidence.first if first_leads else evidence.second,
        conditions=(_condition("success lower bound", lower, ">", Fraction(0), met=excludes),),
        sentence=f"success: the interval {'excludes' if excludes else 'includes'} zero ({ends})",
    )


def _saving_finding(rule: TieBreak, evidence: PairEvidence, limits: Thresholds) -> RuleFinding:
    """Cost or time under the 10 %-and-interval rule, for whichever arm meets it."""
    if rule == "cost":
        first, second, ratio = evidence.cost_first, evidence.cost_second, evidence.cost_ratio
    else:
        first, second, ratio = evidence.time_first, evidence.time_second, evidence.time_ratio
    success = evidence.success
    if success is None or first is None or second is None or ratio is None:
        unknown = f"{rule}: not known for every run, so the rules stop here"
        return RuleFinding(rule=rule, status="not qualified", sentence=unknown)
    first_leads = first.low < second.low or (first.low == second.low and ratio.low <= 1)
    lower = success.low if first_leads else -success.high
    ours, theirs = (first, second) if first_leads else (second, first)
    reach = ratio if first_leads else inverse(ratio)
    margin = Fraction(-limits.margin_points, 100)
    saves = at_least_lower(ours.high, theirs.low, limits.saving_percent)
    below, holds = reach.high < 1, above_margin(lower, limits.margin_points)
    asked = theirs.low if theirs.low == UNBOUNDED else theirs.low * Fraction(100 - limits.saving_percent, 100)
    status: Literal["met", "tie", "no tie"] = "tie" if not (saves and below) else "met" if holds else "no tie"
    numbers = (
        f"success lower bound {_points(lower, margin)} points; {_saving(ours.high, theirs, limits.saving_percent)}"
        f" lower; ratio interval {_ratio(reach.low)} to {_ratio(reach.high)}"
    )
    if status == "met":
        told = f"at least {limits.saving_percent} % lower, and its interval lies entirely below 1"
    elif status == "no tie":
        told = f"the success lower bound is not above -{limits.margin_points} points, so the rules stop here"
    elif not saves:
        told = f"neither is at least {limits.saving_percent} % lower"
    else:
        told = "the ratio interval is not entirely below 1"
    arm = evidence.first if first_leads else evidence.second
    return RuleFinding(
        rule=rule,
        status=status,
        arm=arm,
        conditions=(
            _condition("success lower bound", lower, ">", margin, met=holds),
            _condition(_THINGS[rule], ours.high, "<=", asked, met=saves),
            _condition(f"upper end of the {rule} ratio", reach.high, "<", Fraction(1), met=below),
        ),
        sentence=f"{rule}: {told} ({arm}: {numbers})",
    )


def _condition(quantity: str, value: Exact, relation: Literal[">", "<", "<="], bound: Exact, *, met: bool) -> Condition:
    return Condition(
        quantity=quantity, value=exact_text(value) or "", relation=relation, bound=exact_text(bound) or "", met=met
    )


def inverse(ratio: Bounds) -> Bounds:
    """The ends of the ratio the other way round."""

    def one_over(end: Exact) -> Exact:
        return UNBOUNDED if end == 0 else Fraction(0) if not isinstance(end, Fraction) else 1 / end

    return Bounds(low=one_over(ratio.high), high=one_over(ratio.low))


def sentence(decision: Decision, evidence: PairEvidence, names: Mapping[str, str] | None = None) -> str:
    """The conclusion as a reader may quote it: the winner first, then the measured difference and its interval."""
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
            f"{winner} was more successful than {loser}: {_points(size, Fraction(0))} percentage points "
            f"(Holm-adjusted 95 % interval {_points(low, Fraction(0))} to {_points(high, Fraction(0))})."
        )
    ours, theirs, ratio = (
        (evidence.cost_first, evidence.cost_second, evidence.cost_ratio)
        if decision.rule == "cost"
        else (evidence.time_first, evidence.time_second, evidence.time_ratio)
    )
    ours, theirs = (ours, theirs) if first_wins else (theirs, ours)
    if ours is None or theirs is None or ratio is None:
        raise ValueError(f"a decision by {decision.rule} needs both values and their ratio")
    reach = ratio if first_wins else inverse(ratio)
    thing = _THINGS[decision.rule]
    if theirs.low == UNBOUNDED:
        told = f"its {thing} was finite and the other's without bound"
    else:
        told = f"its {thing} was {_saving(ours.high, theirs, 0)} lower"
    interval = f"Holm-adjusted 95 % interval of the ratio {_ratio(reach.low)} to {_ratio(reach.high)}"
    return f"{winner} was more efficient than {loser}: {told}, at tied success ({interval})."


def _apart(value: Fraction, bound: Fraction, places: int) -> str:
    """Rounded to so many places, or to more where the rounded text would hide on which side of the bound it lies."""
    while places < _PLACES_MAX and value != bound and decimal_text(value, places) == decimal_text(bound, places):
        places += 1
    return decimal_text(value, places)


def _points(value: Exact, bound: Fraction) -> str:
    if isinstance(value, Fraction):
        return ("+" if value > 0 else "") + _apart(100 * value, 100 * bound, 1).replace("-", "−")
    return "unbounded" if value > 0 else "−unbounded"


def _ratio(value: Exact) -> str:
    return _apart(value, Fraction(1), 3) if isinstance(value, Fraction) else "unbounded"


def _saving(ours: Exact, theirs: Bounds, percent: int) -> str:
    """How much lower ours is, in percent; negative when it may be higher. Theirs may be only a lower bound."""
    if isinstance(ours, Fraction) and isinstance(theirs.low, Fraction) and theirs.low > 0:
        size = f"{_apart(100 * (1 - ours / theirs.low), Fraction(percent), 1).replace('-', '−')} %"
        return f"at least {size}" if theirs.high > theirs.low else size
    return "without bound" if theirs.low == UNBOUNDED != ours else "not measurably"
