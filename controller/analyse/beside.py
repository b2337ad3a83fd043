"""What is published beside a decision and can't touch it: made after the decision, from the data, for readers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final, Literal

from controller.analyse.enumerate import sign_flip_p, zero_tails
from controller.analyse.holm import ALPHA, interval
from controller.analyse.normal import detectable_factor
from controller.analyse.replicates import Replicates
from controller.domain.exact import exact_text
from controller.protocols.harness_round.decision import Criterion
from controller.protocols.harness_round.estimates import Band, NonDecisional
from controller.protocols.harness_round.show import NOT_APPLICABLE, p_shown, shown

EXACT_TASKS_MAX: Final = 400  # beyond it a pair's exact tail takes tens of milliseconds, and a round may have 66 pairs
_DIGITS: Final = Context(prec=12)


def beside(
    differences: Sequence[int], replicates: Mapping[Criterion, Replicates | None], *, repeats: int, pairs: int
) -> NonDecisional:
    """The columns of one pair.

    `differences` holds successes of the first minus successes of the second, task by task; `pairs` is the number of
    planned comparisons.
    """
    qualified = replicates["success"] is not None
    exact = zero_tails(differences) if qualified and len(differences) <= EXACT_TASKS_MAX else None
    flip = sign_flip_p(differences) if qualified else None
    p = None if exact is None else min(Fraction(1), Fraction(2 * min(exact[:2]), exact[2]))
    spread = _spread(differences, repeats) if qualified else None
    plain, stepped = (_detectable(spread, len(differences), level) for level in (ALPHA, ALPHA / pairs))
    return NonDecisional(
        tasks_for_first=sum(difference > 0 for difference in differences),
        tasks_for_second=sum(difference < 0 for difference in differences),
        tasks_even=sum(difference == 0 for difference in differences),
        sign_flip_p=exact_text(flip),
        sign_flip_p_shown=NOT_APPLICABLE if flip is None else p_shown(flip),
        exact_tail_at_or_below=None if exact is None else _digits(Fraction(exact[0], exact[2])),
        exact_tail_at_or_above=None if exact is None else _digits(Fraction(exact[1], exact[2])),
        exact_p=None if p is None else _digits(p),
        exact_p_shown=NOT_APPLICABLE if p is None else p_shown(p),
        bonferroni=tuple(_band(criterion, one, ALPHA / pairs) for criterion, one in replicates.items()),
        difference_sd=None if spread is None else _digits(spread),
        detectable_unadjusted=None if plain is None else _digits(plain),
        detectable_unadjusted_shown=_points(plain),
        detectable_at_first_step=None if stepped is None else _digits(stepped),
        detectable_at_first_step_shown=_points(stepped),
        reason="" if qualified else "the pair is not qualified",
    )


def _band(criterion: Criterion, replicates: Replicates | None, level: Fraction) -> Band:
    unit: Literal["share", "ratio"] = "share" if criterion == "success" else "ratio"
    signed = criterion == "success"
    k, low, high = (None, None, None) if replicates is None else interval(replicates, level)
    return Band(
        criterion=criterion,
        level=str(level),
        k=k,
        low=exact_text(low),
        high=exact_text(high),
        low_shown=shown(low, unit, signed=signed),
        high_shown=shown(high, unit, signed=signed),
    )


def _spread(differences: Sequence[int], repeats: int) -> Fraction | None:
    """The standard deviation of the per-task differences of success rates, to 12 digits; None of fewer than two."""
    count = len(differences)
    if count < 2:
        return None
    scatter = count * sum(value * value for value in differences) - sum(differences) ** 2
    variance = Fraction(scatter, count * (count - 1) * repeats * repeats)
    return Fraction(_DIGITS.sqrt(_DIGITS.divide(Decimal(variance.numerator), Decimal(variance.denominator))))


def _detectable(spread: Fraction | None, tasks: int, level: Fraction) -> Fraction | None:
    if spread is None:
        return None
    return detectable_factor(level) * spread / Fraction(_DIGITS.sqrt(Decimal(tasks)))


def _digits(value: Fraction) -> str:
    return str(_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _points(value: Fraction | None) -> str:
    return NOT_APPLICABLE if value is None else shown(value, "share").replace(" %", " points")
