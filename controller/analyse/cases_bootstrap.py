"""Cases with resampling: exact distributions over all resamples of a few clusters, and published Monte Carlo draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from controller.analyse.case_values import (
    EXACT_TASKS_MAX,
    REPEATS_MAX,
    Input,
    amounts,
    counts,
    exact,
    label_of,
    listed,
    resamples_of,
    share,
    whole,
)
from controller.analyse.cases_simple import plain
from controller.analyse.enumerate import distribution, sign_test_p, sum_distribution
from controller.analyse.holm import interval, p_value
from controller.analyse.percentile import HIGH, LOW, percentile_interval, ranks
from controller.analyse.quantile import nearest_rank
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import matrix, matrix_digest, multiplicities
from controller.domain.exact import UNBOUNDED, Exact, exact_text
from controller.protocols.cost_index.rules import cost_per_outcome


def _dot(weights: Sequence[int], values: Sequence[Fraction | int]) -> Fraction:
    return sum((weight * Fraction(value) for weight, value in zip(weights, values, strict=True)), Fraction(0))


_TIMES_MAX: Final = 1_000  # of an exact quantile: up to 24,310 resamples walk over all of them


def _bound(ways: Mapping[Exact, int], quantile: Fraction) -> Exact:
    """The nearest-rank quantile of a weighted distribution."""
    return _bound_of(sorted(ways.items()), quantile)


def _bound_of(weighted: Sequence[tuple[Exact, int]], quantile: Fraction) -> Exact:
    """The same of values in ascending order, each with its weight."""
    rank, seen = nearest_rank(quantile, sum(weight for _, weight in weighted)), 0
    for value, weight in weighted:
        seen += weight
        if seen >= rank:
            return value
    raise ValueError("an empty distribution has no quantile")


def _listed(ways: Mapping[Exact, int]) -> dict[str, int]:
    return {str(exact_text(value)): ways[value] for value in sorted(ways)}


def difference_case(given: Input) -> dict[str, Any]:
    """The paired difference of success rates; in sparse form only the discordant tasks are given."""
    if "discordant_for_A" in given:
        tasks = whole(given["T"], "T", least=1, most=EXACT_TASKS_MAX)
        ours = whole(given["discordant_for_A"], "discordant_for_A", most=tasks)
        theirs = whole(given["discordant_for_B"], "discordant_for_B", most=tasks - ours)
        repeats, differences = 1, [1] * ours + [-1] * theirs + [0] * (tasks - ours - theirs)
    else:
        differences, repeats = _differences(given)
        tasks = len(differences)
        if tasks > EXACT_TASKS_MAX:
            raise ValueError(f"{tasks} tasks: an exact distribution takes 1 to {EXACT_TASKS_MAX}")
    ways_of = sum_distribution(differences)
    total = tasks**tasks
    at_most = Fraction(sum(ways for value, ways in ways_of.items() if value <= 0), total)
    at_least = Fraction(sum(ways for value, ways in ways_of.items() if value >= 0), total)
    two_sided = min(Fraction(1), 2 * min(at_most, at_least))
    unit = Fraction(1, tasks * repeats)
    values: dict[Exact, int] = {value * unit: ways for value, ways in ways_of.items()}
    if "discordant_for_A" in given:
        sign_test = sign_test_p(ours, theirs)
        return {"P_le_0": float(at_most), "two_sided": float(two_sided), "sign_test_two_sided": str(sign_test)}
    return {
        "estimate": str(sum(differences) * unit),
        "total": total,
        "counts": {str(value): ways_of[value] for value in sorted(ways_of)},
        "P_le_0": str(at_most),
        "P_ge_0": str(at_least),
        "ideal_two_sided_p": str(two_sided),
        "p2_5": exact_text(_bound(values, LOW)),
        "p97_5": exact_text(_bound(values, HIGH)),
    }


def _differences(given: Input) -> tuple[list[int], int]:
    """Successes of A minus successes of B, task by task, and how many repeats a task has."""
    repeats = whole(given.get("repeats", 3), "repeats", least=1, most=REPEATS_MAX)
    both = (counts(given, name, most=repeats) for name in ("successes_A", "successes_B"))
    return [a - b for a, b in zip(*both, strict=True)], repeats


def cost_per_success_case(given: Input) -> dict[str, Any]:
    """Total spend over total successes; fewer than two clusters give an estimate and no interval."""
    spend, successes = amounts(given, "spend_micro"), counts(given, "successes")

    def per_success(weights: Sequence[int]) -> Exact:
        return cost_per_outcome(_dot(weights, spend), _dot(weights, successes))

    clusters = len(spend)
    estimate = exact_text(per_success([1] * clusters))
    if clusters < 2:
        return {"estimate": estimate, "low": None, "high": None, "reason": "fewer than 2 clusters"}
    ways = distribution(clusters, per_success)
    return {
        "estimate": estimate,
        "total": clusters**clusters,
        "counts": _listed(ways),
        "P_infinite": str(Fraction(ways[UNBOUNDED], clusters**clusters)),
        "low": exact_text(_bound(ways, LOW)),
        "high": exact_text(_bound(ways, HIGH)),
    }


def cost_ratio_case(given: Input) -> dict[str, Any]:
    """Cost per success of A over that of B; an undefined resample is 0 for the lower, infinite for the upper bound."""
    spends = amounts(given, "spend_A"), amounts(given, "spend_B")
    hits = counts(given, "successes_A"), counts(given, "successes_B")

    def ratio(weights: Sequence[int]) -> Exact | None:
        (spent_a, spent_b), (hits_a, hits_b) = ([_dot(weights, one) for one in both] for both in (spends, hits))
        if (not hits_a and not hits_b) or (hits_a and hits_b and not spent_a and not spent_b):
            return None
        if not hits_a:
            return UNBOUNDED
        if not hits_b:
            return Fraction(0)
        return (spent_a * hits_b) / (hits_a * spent_b) if spent_b else UNBOUNDED

    clusters = len(spends[0])
    all_ways = distribution(clusters, ratio)
    undefined = all_ways.pop(None, 0)
    known: Counter[Exact] = Counter({value: ways for value, ways in all_ways.items() if value is not None})
    low, high = known.copy(), known.copy()
    if undefined:
        low[Fraction(0)] += undefined
        high[UNBOUNDED] += undefined
    bounds = (None, None) if clusters < 2 else (_bound(low, LOW), _bound(high, HIGH))
    return {
        "estimate": exact_text(ratio([1] * clusters)),
        "total": clusters**clusters,
        "undefined": undefined,
        "counts_low": _listed(low),
        "counts_high": _listed(high),
        "low": exact_text(bounds[0]),
        "high": exact_text(bounds[1]),
        "entirely_below_1": bounds[1] is not None and bounds[1] < 1,
    }


def rate_case(given: Input) -> dict[str, Any]:
    """Successes over attempts with clusters of unequal size."""
    successes, attempts = counts(given, "successes"), counts(given, "attempts")
    if not all(0 < tried >= hits for hits, tried in zip(successes, attempts, strict=True)):
        raise ValueError("attempts: each cluster has at least one, and no more successes than attempts")

    def rate(weights: Sequence[int]) -> Exact:
        return _dot(weights, successes) / _dot(weights, attempts)

    return _whole_distribution(len(successes), rate, ())


def quantile_case(given: Input) -> dict[str, Any]:
    """A nearest-rank quantile over all runs of the drawn tasks."""
    by_task, quantile = listed(given, "times_by_task", least=1), share(given["q"], "q")
    if not all(isinstance(times, list) and times for times in by_task) or sum(map(len, by_task)) > _TIMES_MAX:
        raise ValueError(f"times_by_task: each task has a list of times, {_TIMES_MAX:,} in all at most")
    pooled = sorted((exact(time), task) for task, times in enumerate(by_task) for time in times)

    def drawn_quantile(weights: Sequence[int]) -> Exact:
        return _bound_of([(time, weights[task]) for time, task in pooled], quantile)

    return _whole_distribution(len(by_task), drawn_quantile, [time for times in by_task for time in times])


def _whole_distribution(
    clusters: int, statistic: Callable[[Sequence[int]], Exact], like: Sequence[Any]
) -> dict[str, Any]:
    ways = distribution(clusters, statistic)
    bounds = (None, None) if clusters < 2 else (_bound(ways, LOW), _bound(ways, HIGH))
    return {
        "estimate": plain(statistic([1] * clusters), like),
        "total": clusters**clusters,
        "counts": _listed(ways),
        "low": plain(bounds[0], like),
        "high": plain(bounds[1], like),
    }


def monte_carlo_case(given: Input) -> dict[str, Any]:
    """The same statistics over the published draws of a label."""
    return _monte_carlo_difference(given) if "successes_A" in given else _monte_carlo_cost(given)


def _monte_carlo_difference(given: Input) -> dict[str, Any]:
    differences, repeats = _differences(given)
    resamples = resamples_of(given, each=len(differences))
    drawn = multiplicities(matrix(label_of(given), resamples, len(differences)))
    sums = drawn @ np.array(differences, dtype=np.int64)
    replicates = WholeReplicates(sums, Fraction(1, len(differences) * repeats))
    at_most, at_least = replicates.at_most(Fraction(0)), replicates.at_least(Fraction(0))
    k, low, high = interval(replicates)
    (first, last), (lowest, highest) = ranks(resamples), percentile_interval(replicates)
    seen = Counter(sums.tolist())
    return {
        "count_le_0": at_most,
        "count_ge_0": at_least,
        "p": str(p_value(resamples, at_most, at_least)),
        f"nearest_rank_{first}": exact_text(lowest),
        f"nearest_rank_{last}": exact_text(highest),
        f"symmetric_k{k}": exact_text(low),
        f"symmetric_{resamples + 1 - k}": exact_text(high),
        "counts": {str(value): seen[value] for value in sorted(seen)},
    }


def _monte_carlo_cost(given: Input) -> dict[str, Any]:
    spend, successes = amounts(given, "spend_micro"), counts(given, "successes")
    indices = matrix(label_of(given), resamples_of(given, each=len(spend)), len(spend))
    seen: Counter[Exact] = Counter()
    for weights in multiplicities(indices).tolist():
        seen[cost_per_outcome(_dot(weights, spend), _dot(weights, successes))] += 1
    return {
        "matrix_sha256": matrix_digest(indices).removeprefix("sha256:"),
        "infinite": seen[UNBOUNDED],
        "low": exact_text(_bound(seen, LOW)),
        "high": exact_text(_bound(seen, HIGH)),
        "counts": _listed(seen),
    }
