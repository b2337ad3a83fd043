"""Cases with resampling: exact distributions over all resamples of a few clusters, and published Monte Carlo draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from controller.analyse.cases_simple import Input, exact, plain
from controller.analyse.enumerate import distribution, sign_test_p, sum_distribution
from controller.analyse.holm import interval, p_value
from controller.analyse.percentile import HIGH, LOW, percentile_interval, ranks
from controller.analyse.quantile import at_rank, nearest_rank
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import matrix, matrix_digest, multiplicities
from controller.domain.exact import UNBOUNDED, Exact, exact_text
from controller.protocols.cost_index.rules import cost_per_outcome


def _dot(weights: Sequence[int], values: Sequence[Fraction | int]) -> Fraction:
    return sum((weight * Fraction(value) for weight, value in zip(weights, values, strict=True)), Fraction(0))


def _numbers(given: Input, name: str) -> list[Fraction]:
    return [exact(value) for value in given[name]]


def _bound(counts: Mapping[Exact, int], quantile: Fraction) -> Exact:
    """The nearest-rank quantile of a weighted distribution."""
    rank, seen = nearest_rank(quantile, sum(counts.values())), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= rank:
            return value
    raise ValueError("an empty distribution has no quantile")


def _listed(counts: Mapping[Exact, int]) -> dict[str, int]:
    return {str(exact_text(value)): counts[value] for value in sorted(counts)}


def difference_case(given: Input) -> dict[str, Any]:
    """The paired difference of success rates; in sparse form only the discordant tasks are given."""
    if "discordant_for_A" in given:
        ours, theirs, tasks = (int(given[name]) for name in ("discordant_for_A", "discordant_for_B", "T"))
        repeats, differences = 1, [1] * ours + [-1] * theirs + [0] * (tasks - ours - theirs)
    else:
        first, second = given["successes_A"], given["successes_B"]
        repeats = int(given.get("repeats", 3))
        differences = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
        tasks = len(differences)
    counts = sum_distribution(differences)
    total = tasks**tasks
    at_most = Fraction(sum(ways for value, ways in counts.items() if value <= 0), total)
    at_least = Fraction(sum(ways for value, ways in counts.items() if value >= 0), total)
    two_sided = min(Fraction(1), 2 * min(at_most, at_least))
    unit = Fraction(1, tasks * repeats)
    values: dict[Exact, int] = {value * unit: ways for value, ways in counts.items()}
    if "discordant_for_A" in given:
        sign_test = sign_test_p(ours, theirs)
        return {"P_le_0": float(at_most), "two_sided": float(two_sided), "sign_test_two_sided": str(sign_test)}
    return {
        "estimate": str(sum(differences) * unit),
        "total": total,
        "counts": {str(value): counts[value] for value in sorted(counts)},
        "P_le_0": str(at_most),
        "P_ge_0": str(at_least),
        "ideal_two_sided_p": str(two_sided),
        "p2_5": exact_text(_bound(values, LOW)),
        "p97_5": exact_text(_bound(values, HIGH)),
    }


def cost_per_success_case(given: Input) -> dict[str, Any]:
    """Total spend over total successes; fewer than two clusters give an estimate and no interval."""
    spend, successes = _numbers(given, "spend_micro"), _numbers(given, "successes")

    def per_success(weights: Sequence[int]) -> Exact:
        count = _dot(weights, successes)
        return cost_per_outcome(_dot(weights, spend), count)

    clusters = len(spend)
    estimate = exact_text(per_success([1] * clusters))
    if clusters < 2:
        return {"estimate": estimate, "low": None, "high": None, "reason": "fewer than 2 clusters"}
    counts = distribution(clusters, per_success)
    return {
        "estimate": estimate,
        "total": clusters**clusters,
        "counts": _listed(counts),
        "P_infinite": str(Fraction(counts[UNBOUNDED], clusters**clusters)),
        "low": exact_text(_bound(counts, LOW)),
        "high": exact_text(_bound(counts, HIGH)),
    }


def cost_ratio_case(given: Input) -> dict[str, Any]:
    """Cost per success of A over that of B; an undefined resample is 0 for the lower, infinite for the upper bound."""
    spends = _numbers(given, "spend_A"), _numbers(given, "spend_B")
    hits = _numbers(given, "successes_A"), _numbers(given, "successes_B")

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
    counts = distribution(clusters, ratio)
    undefined = counts.pop(None, 0)
    known: Counter[Exact] = Counter({value: ways for value, ways in counts.items() if value is not None})
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
    successes, attempts = _numbers(given, "successes"), _numbers(given, "attempts")

    def rate(weights: Sequence[int]) -> Exact:
        return _dot(weights, successes) / _dot(weights, attempts)

    return _whole_distribution(len(successes), rate, ())


def quantile_case(given: Input) -> dict[str, Any]:
    """A nearest-rank quantile over all runs of the drawn tasks."""
    times, quantile = given["times_by_task"], exact(given["q"])

    def drawn_quantile(weights: Sequence[int]) -> Exact:
        pool = [exact(time) for weight, task in zip(weights, times, strict=True) for time in task * weight]
        value = at_rank(pool, quantile)
        if value is None:
            raise ValueError("times_by_task: a task has no time")
        return value

    return _whole_distribution(len(times), drawn_quantile, [time for task in times for time in task])


def _whole_distribution(
    clusters: int, statistic: Callable[[Sequence[int]], Exact], like: Sequence[Any]
) -> dict[str, Any]:
    counts = distribution(clusters, statistic)
    bounds = (None, None) if clusters < 2 else (_bound(counts, LOW), _bound(counts, HIGH))
    return {
        "estimate": plain(statistic([1] * clusters), like),
        "total": clusters**clusters,
        "counts": _listed(counts),
        "low": plain(bounds[0], like),
        "high": plain(bounds[1], like),
    }


def monte_carlo_case(given: Input) -> dict[str, Any]:
    """The same statistics over the published draws of a label."""
    return _monte_carlo_difference(given) if "successes_A" in given else _monte_carlo_cost(given)


def _monte_carlo_difference(given: Input) -> dict[str, Any]:
    differences = [int(a) - int(b) for a, b in zip(given["successes_A"], given["successes_B"], strict=True)]
    repeats, resamples = int(given.get("repeats", 3)), int(given["B"])
    drawn = multiplicities(matrix(given["label"], resamples, len(differences)))
    sums = drawn @ np.array(differences, dtype=np.int64)
    replicates = WholeReplicates(sums, Fraction(1, len(differences) * repeats))
    at_most, at_least = replicates.at_most(Fraction(0)), replicates.at_least(Fraction(0))
    k, low, high = interval(replicates)
    (first, last), (lowest, highest) = ranks(resamples), percentile_interval(replicates)
    counts = Counter(int(value) for value in sums)
    return {
        "count_le_0": at_most,
        "count_ge_0": at_least,
        "p": str(p_value(resamples, at_most, at_least)),
        f"nearest_rank_{first}": exact_text(lowest),
        f"nearest_rank_{last}": exact_text(highest),
        f"symmetric_k{k}": exact_text(low),
        f"symmetric_{resamples + 1 - k}": exact_text(high),
        "counts": {str(value): counts[value] for value in sorted(counts)},
    }


def _monte_carlo_cost(given: Input) -> dict[str, Any]:
    spend, successes = _numbers(given, "spend_micro"), [int(count) for count in given["successes"]]
    resamples = int(given["B"])
    indices = matrix(given["label"], resamples, len(spend))
    counts: Counter[Exact] = Counter()
    for weights in multiplicities(indices).tolist():
        count = _dot(weights, successes)
        counts[cost_per_outcome(_dot(weights, spend), count)] += 1
    return {
        "matrix_sha256": matrix_digest(indices).removeprefix("sha256:"),
        "infinite": counts[UNBOUNDED],
        "low": exact_text(_bound(counts, LOW)),
        "high": exact_text(_bound(counts, HIGH)),
        "counts": _listed(counts),
    }
