"""The same 258 bootstrap statistics by the engine, by scipy and by arch, each in a process of its own.

Twelve arms on the same tasks, three repeats each: success rate, cost and tokens per success, p50 and p90 of time of
every arm (60), and of all 66 pairs the difference of success rates and the ratios of cost per success and of p90 (198).
Every statistic gets both ends of its interval. Prints one line of JSON; imports and data stand outside the clock.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.analyse.draws import QuantileDraws, Resampler, per_success, quantile_ratio, ratio_per_success
from controller.analyse.holm import holm_intervals, interval
from controller.analyse.quantile import Pooled, nearest_rank
from controller.analyse.replicates import WholeReplicates

ARMS: Final = 12
REPEATS: Final = 3
RESAMPLES: Final = 10_000
STATISTICS: Final = 258
_SEED: Final = "5eed" * 16
_BATCH: Final = 500  # of scipy's vectorised form: larger ones are slower and need gigabytes
_PAIRS: Final = list(combinations(range(ARMS), 2))
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Per task and arm: successes, cost in nano-dollars, tokens; and the time of every repeat (tasks x arms x 3)."""

    successes: Numbers
    cost: Numbers
    tokens: Numbers
    times: Numbers


def data_of(tasks: int) -> Data:
    """Arms that succeed about as often on the same easy and hard tasks, with costs and times of a long tail."""
    chance = Random(tasks)
    ease = [chance.uniform(0.2, 0.95) for _ in range(tasks)]

    def table(draw: Callable[[int], int]) -> Numbers:
        return np.array([[draw(task) for _ in range(ARMS)] for task in range(tasks)], dtype=np.int64)

    return Data(
        successes=table(lambda task: sum(chance.random() < ease[task] for _ in range(REPEATS))),
        cost=table(lambda _: int(1e8 * chance.lognormvariate(0, 0.8))),
        tokens=table(lambda _: int(1e5 * chance.lognormvariate(0, 0.8))),
        times=np.stack([table(lambda _: int(9e4 * chance.lognormvariate(0, 0.6))) for _ in range(REPEATS)], axis=2),
    )


def ours(data: Data) -> int:
    """The engine: exact order statistics, 95 % intervals of arms and three Holm families of pairs."""
    tasks = len(data.successes)
    resampler = Resampler.of(_SEED, tasks, RESAMPLES)
    columns = np.concatenate([data.successes, data.cost, data.tokens], axis=1).T.tolist()
    sums = resampler.sums(columns)
    successes, cost, tokens = sums[:ARMS], sums[ARMS : 2 * ARMS], sums[2 * ARMS :]
    wins = [one.limbs[0] for one in successes]
    unit = Fraction(1, REPEATS * tasks)
    intervals: list[object] = [interval(WholeReplicates(one, unit)) for one in wins]
    for spent, nano in ((cost, Fraction(1, 10**9)), (tokens, Fraction(1))):
        intervals += [interval(per_success(one, nano, won)) for one, won in zip(spent, wins, strict=True)]
    p90 = []
    for arm in range(ARMS):
        pooled = Pooled.of(data.times[:, arm].tolist())
        drawn = [
            QuantileDraws(pooled, found, Fraction(1), None)
            for found in resampler.positions(pooled, (Fraction(1, 2), Fraction(9, 10)))
        ]
        intervals += [interval(one) for one in drawn]
        p90.append(drawn[1])
    families = (
        ([WholeReplicates(wins[a] - wins[b], unit) for a, b in _PAIRS], Fraction(0)),
        ([ratio_per_success(cost[a], wins[a], cost[b], wins[b]) for a, b in _PAIRS], Fraction(1)),
        ([quantile_ratio(p90[a], p90[b]) for a, b in _PAIRS], Fraction(1)),
    )
    for family, null in families:
        intervals += holm_intervals(family, resamples=RESAMPLES, null=null)
    return len(intervals)


def statistics_of(data: Data, drawn: Numbers) -> Floats:
    """All statistics of one resample (tasks) or of many (resamples x tasks): 258, or 258 x resamples."""
    axis = drawn.ndim - 1
    count = drawn.shape[-1] * REPEATS
    wins, cost, tokens = (
        table[drawn].sum(axis=axis, dtype=np.int64) for table in (data.successes, data.cost, data.tokens)
    )
    times = np.moveaxis(data.times[drawn], -2, axis).reshape(*drawn.shape[:-1], ARMS, count)
    ranks = [nearest_rank(Fraction(tenths, 10), count) - 1 for tenths in (5, 9)]
    ordered = np.partition(times, ranks, axis=-1)
    p50, p90 = ordered[..., ranks[0]], ordered[..., ranks[1]]
    first, second = [a for a, _ in _PAIRS], [b for _, b in _PAIRS]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate, price = wins / count, cost / wins
        parts = [rate, price, tokens / wins, p50, p90, rate[..., first] - rate[..., second]]
        parts += [price[..., first] / price[..., second], p90[..., first] / p90[..., second]]
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, 0)


def scipy_plain(data: Data) -> int:
    """scipy.stats.bootstrap as one writes it: one call, a function of one resample that gives all statistics."""
    return _scipy(data, vectorised=False)


def scipy_vectorised(data: Data) -> int:
    """scipy.stats.bootstrap with the function vectorised over resamples by hand."""
    return _scipy(data, vectorised=True)


def _scipy(data: Data, *, vectorised: bool) -> int:
    from scipy.stats import bootstrap  # type: ignore[import-untyped]

    def statistic(drawn: Any, axis: int = -1) -> Floats:
        return statistics_of(data, np.moveaxis(drawn, axis, -1))

    found = bootstrap(
        (np.arange(len(data.successes)),),
        statistic if vectorised else lambda drawn: statistics_of(data, drawn),
        n_resamples=RESAMPLES,
        batch=_BATCH if vectorised else None,
        vectorized=vectorised,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    return len(found.confidence_interval.low)


def arch(data: Data) -> int:
    """arch's IIDBootstrap over the tasks, percentile intervals of the same function."""
    from arch.bootstrap import IIDBootstrap

    resampled = IIDBootstrap(np.arange(len(data.successes)), seed=np.random.default_rng(1))
    found = resampled.conf_int(lambda drawn: statistics_of(data, drawn), reps=RESAMPLES, method="percentile")
    return int(found.shape[1])


SUBJECTS: Final[dict[str, Callable[[Data], int]]] = {
    "ours": ours,
    "scipy": scipy_plain,
    "scipy_vectorised": scipy_vectorised,
    "arch": arch,
}


def measure(subject: str, tasks: int, times: int) -> dict[str, float]:
    """The least wall and CPU seconds of so many goes, and the peak of this process's resident memory in MB.

    One go on six tasks comes first, so that lazy imports stand outside the clock.
    """
    data, act = data_of(tasks), SUBJECTS[subject]
    act(data_of(6))
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        if act(data) != STATISTICS:
            raise AssertionError(f"{subject} gave another number of statistics than {STATISTICS}")
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {"wall_s": round(min(walls), 3), "cpu_s": round(min(cpus), 3), "peak_mb": round(peak)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))) + "\n")
