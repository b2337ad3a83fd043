"""The estimates of a cost index: of every cell, and of every stack over all outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Literal

import numpy as np

from controller.analyse.cost_cohort import OutcomeCases, StackCases
from controller.analyse.draws import Resampler, per_success, share
from controller.analyse.percentile import percentile_interval
from controller.analyse.wilson import bound_text, wilson
from controller.domain.exact import Exact, exact_text
from controller.protocols.cost_index.estimates import Cohort, Estimate
from controller.protocols.cost_index.rules import cost_per_outcome
from controller.protocols.cost_index.show import NOT_APPLICABLE, UNDEFINED, money_shown, share_shown

FEW_CLUSTERS = "fewer than two independent clusters, so no resampling interval is claimed"
Method = Literal["wilson", "cluster-bootstrap"]


@dataclass(frozen=True, slots=True)
class Columns:
    """One cell by cluster, as integers; `spend` is in whole `unit`s, and None when it is unknown."""

    successes: tuple[int, ...]
    instances: tuple[int, ...]
    spend: tuple[int, ...] | None
    unit: Fraction


def draw(outcome: OutcomeCases, seed: str, resamples: int) -> Resampler | None:
    """The draws of one outcome, which all its stacks share; None below two clusters."""
    clusters = len(outcome.clusters)
    return Resampler.of(seed, clusters, resamples, family=outcome.outcome) if clusters >= 2 else None


def cohort(outcome: OutcomeCases, drawn: Resampler | None) -> Cohort:
    listed = "".join(f"{cluster}\n" for cluster in outcome.clusters).encode()
    return Cohort(
        outcome=outcome.outcome,
        instances=len(outcome.instances),
        clusters=len(outcome.clusters),
        independent=outcome.independent,
        clusters_digest=f"sha256:{hashlib.sha256(listed).hexdigest()}",
        label=None if drawn is None else drawn.stream,
        matrix_digest=None if drawn is None else drawn.digest,
    )


def stratified(drawn: Sequence[Resampler | None]) -> Resampler | None:
    """All outcomes at once, each resampled within itself; None if one of them has fewer than two clusters."""
    known = [one for one in drawn if one is not None]
    if len(known) < len(drawn) or not known:
        return None
    return Resampler(
        stream="",
        digest="",
        drawn=np.hstack([one.drawn for one in known]),
        by_task=np.vstack([one.by_task for one in known]),
    )


def columns(cell: StackCases, clusters: Sequence[str], unit: Fraction) -> Columns:
    """Whole clusters keep every attempt, cost and grade of their instances together."""
    place = {cluster: index for index, cluster in enumerate(clusters)}
    successes, instances, spend = ([0] * len(clusters) for _ in range(3))
    for case in cell.cases:
        at = place[case.cluster]
        instances[at] += 1
        successes[at] += case.verified is True
        cost = case.spend
        spend[at] += 0 if cost is None else int(cost / unit)
    known = None if cell.spend is None else tuple(spend)
    return Columns(tuple(successes), tuple(instances), known, unit)


def unit_of(cells: Sequence[StackCases]) -> Fraction:
    """The largest unit of which every cost in these cells is a whole multiple, as 1/n."""
    costs = [cost for cell in cells for case in cell.cases if (cost := case.spend) is not None]
    return Fraction(1, lcm(*(cost.denominator for cost in costs)))


def joined(parts: Sequence[Columns]) -> Columns:
    """The columns of several outcomes side by side; the parts have one unit."""
    spends = [part.spend for part in parts if part.spend is not None]
    return Columns(
        sum((part.successes for part in parts), ()),
        sum((part.instances for part in parts), ()),
        sum(spends, ()) if len(spends) == len(parts) else None,
        parts[0].unit,
    )


def success_rate(found: Columns, drawn: Resampler | None, *, independent: bool) -> Estimate:
    """Verified successes over all predeclared instances; Wilson's interval when every instance is independent."""
    successes, instances = sum(found.successes), sum(found.instances)
    value = Fraction(successes, instances)
    if independent:
        ends = wilson(successes, instances)
        assert ends is not None  # an outcome has at least one instance
        return _estimate(value, share_shown, "wilson", (ends.low, ends.high))
    if drawn is None:
        return _estimate(value, share_shown, None, None, reason=FEW_CLUSTERS)
    part, whole = drawn.sums([found.successes, found.instances])
    return _estimate(value, share_shown, "cluster-bootstrap", percentile_interval(share(part, whole)))


def cost_per_verified(found: Columns, drawn: Resampler | None, currency: str | None, unknown: str) -> Estimate:
    """Spend over verified successes, without a value for the reason `unknown`, if that is given."""

    def shown(value: Exact | None) -> str:
        return money_shown(value, currency)

    if found.spend is None or unknown:
        return _estimate(None, shown, None, None, reason=unknown)
    successes = sum(found.successes)
    value = cost_per_outcome(sum(found.spend) * found.unit, successes)
    if drawn is None:
        made = _estimate(value, shown, None, None, reason=FEW_CLUSTERS)
    else:
        spent, verified = drawn.sums([found.spend, found.successes])
        replicates = per_success(spent, found.unit, verified.limbs[0])
        made = _estimate(value, shown, "cluster-bootstrap", percentile_interval(replicates))
        made = made.model_copy(update={"infinite_replicates": replicates.infinite})
    return made if successes else made.model_copy(update={"value_shown": UNDEFINED})


def _estimate(
    value: Exact | None,
    shown: Callable[[Exact | None], str],
    method: Method | None,
    ends: tuple[Exact | Decimal, Exact | Decimal] | None,
    *,
    reason: str = "",
) -> Estimate:
    low, high = ends or (None, None)
    return Estimate(
        value=exact_text(value),
        value_shown=shown(value),
        low=_end_text(low),
        high=_end_text(high),
        low_shown=NOT_APPLICABLE if low is None else shown(_fraction(low)),
        high_shown=NOT_APPLICABLE if high is None else shown(_fraction(high)),
        method=method,
        reason=reason,
    )


def _fraction(end: Exact | Decimal) -> Exact:
    return Fraction(end) if isinstance(end, Decimal) else end


def _end_text(end: Exact | Decimal | None) -> str | None:
    return bound_text(end) if isinstance(end, Decimal) else exact_text(end)
