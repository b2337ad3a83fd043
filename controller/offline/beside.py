"""Columns that decide nothing: discordant tasks, exact tails, Bonferroni bands, detectable differences."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .holm import ALPHA, interval
from .replicates import Replicates
from .shown import NOT_APPLICABLE, exact_text, p_shown, shown

TASKS_MAX = 400
POWER = Fraction(4, 5)
_DIGITS = Context(prec=12)


def columns(
    differences: Sequence[int], replicates: Dict[str, Optional[Replicates]], *, repeats: int, pairs: int
) -> Dict[str, Any]:
    """Of one pair; `differences` are successes of the first minus those of the second, task by task."""
    qualified = replicates["success"] is not None
    tails = zero_tails(differences) if qualified and len(differences) <= TASKS_MAX else None
    p = None if tails is None else min(Fraction(1), 2 * min(tails))
    flip = sign_flip_p(differences) if qualified else None
    spread = _spread(differences, repeats) if qualified else None
    plain, stepped = (_detectable(spread, len(differences), level) for level in (ALPHA, ALPHA / pairs))
    return {
        "decides": False,
        "tasks_for_first": sum(value > 0 for value in differences),
        "tasks_for_second": sum(value < 0 for value in differences),
        "tasks_even": sum(value == 0 for value in differences),
        "sign_flip_p": exact_text(flip),
        "sign_flip_p_shown": NOT_APPLICABLE if flip is None else p_shown(flip),
        "exact_tail_at_or_below": None if tails is None else _digits(tails[0]),
        "exact_tail_at_or_above": None if tails is None else _digits(tails[1]),
        "exact_p": None if p is None else _digits(p),
        "exact_p_shown": NOT_APPLICABLE if p is None else p_shown(p),
        "bonferroni": [_band(criterion, one, ALPHA / pairs) for criterion, one in replicates.items()],
        "difference_sd": None if spread is None else _digits(spread),
        "detectable_unadjusted": None if plain is None else _digits(plain),
        "detectable_unadjusted_shown": _points(plain),
        "detectable_at_first_step": None if stepped is None else _digits(stepped),
        "detectable_at_first_step_shown": _points(stepped),
        "reason": "" if qualified else "the pair is not qualified",
    }


def zero_tails(values: Sequence[int]) -> Tuple[Fraction, Fraction]:
    """The chances that as many draws with replacement sum to at most zero, and to at least zero.

    The ways to reach each sum are the coefficients of a power of a polynomial, Q = P^n, of which P Q' = n P' Q gives
    each from those before it.
    """
    count, least = len(values), min(values)
    steps: Dict[int, int] = {}
    for value in values:
        steps[value - least] = steps.get(value - least, 0) + 1
    constant, place = steps.pop(0), -count * least
    ways: List[int] = [constant**count]
    for at in range(1, (max(values) - least) * count + 1):
        gathered = sum(
            (step * (count + 1) - at) * weight * ways[at - step] for step, weight in steps.items() if step <= at
        )
        ways.append(gathered // (at * constant))
    everything = count**count
    below, here = sum(ways[: max(place, 0)]), ways[place] if 0 <= place < len(ways) else 0
    return Fraction(below + here, everything), Fraction(everything - below, everything)


def sign_flip_p(differences: Sequence[int]) -> Optional[Fraction]:
    """Two-sided: the share of all exchanges of the arms within tasks that give as large a sum or a larger one."""
    sizes = [abs(value) for value in differences if value]
    observed, total = abs(sum(differences)), sum(sizes)
    if len(sizes) > TASKS_MAX:
        return None
    if observed == 0:
        return Fraction(1)
    width = len(sizes) + 1  # no count of patterns needs more bits
    patterns = 1
    for size in sizes:
        patterns += patterns << (width * size)
    tail, mask = 0, (1 << width) - 1
    for positive in range((total + observed) // 2, total + 1):
        tail += patterns >> (width * positive) & mask
    return Fraction(2 * tail, 2 ** len(sizes))


def _spread(differences: Sequence[int], repeats: int) -> Optional[Fraction]:
    """The standard deviation of the per-task differences of success rates, to 12 digits."""
    count = len(differences)
    if count < 2:
        return None
    scatter = count * sum(value * value for value in differences) - sum(differences) ** 2
    variance = Fraction(scatter, count * (count - 1) * repeats * repeats)
    return Fraction(_DIGITS.sqrt(_DIGITS.divide(Decimal(variance.numerator), Decimal(variance.denominator))))


def _detectable(spread: Optional[Fraction], tasks: int, level: Fraction) -> Optional[Fraction]:
    """The true difference that such rounds would find with a power of 80 %."""
    if spread is None:
        return None
    return (_z(POWER) - _z(level / 2)) * spread / Fraction(_DIGITS.sqrt(Decimal(tasks)))


def _z(chance: Fraction) -> Fraction:
    """The standard normal quantile to nine decimals."""
    return Fraction(round(NormalDist().inv_cdf(float(chance)) * 10**9), 10**9)


def _band(criterion: str, replicates: Optional[Replicates], level: Fraction) -> Dict[str, Any]:
    k, low, high = (None, None, None) if replicates is None else interval(replicates, level)
    unit, signed = ("share", True) if criterion == "success" else ("ratio", False)
    return {
        "criterion": criterion,
        "level": str(level),
        "k": k,
        "low": exact_text(low),
        "high": exact_text(high),
        "low_shown": shown(low, unit, signed=signed),
        "high_shown": shown(high, unit, signed=signed),
    }


def _digits(value: Fraction) -> str:
    return str(_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _points(value: Optional[Fraction]) -> str:
    return NOT_APPLICABLE if value is None else shown(value, "share").replace(" %", " points")
