"""What a harness-round says to machines that quote it."""

from __future__ import annotations

from controller.domain.aggregate import Metric, count
from controller.protocols.harness_round.estimates import Analysis, ArmAnalysis, PairAnalysis


def metrics(analysis: Analysis) -> tuple[Metric, ...]:
    """Every estimate of every arm, then the three criteria of every pair."""
    found = [metric for arm in analysis.arms for metric in _arm(arm)]
    return (*found, *(metric for pair in analysis.pairs for metric in _pair(pair)))


def _arm(arm: ArmAnalysis) -> list[Metric]:
    counts = {
        "logical_runs": arm.logical_runs,
        "successes": arm.successes,
        "failures": arm.failures,
        "invalid": arm.invalid,
        "missing": arm.missing,
        "attempts": arm.attempts,
    }
    estimates = (
        arm.success_rate,
        arm.cost_per_success,
        arm.tokens_per_success,
        *arm.quantiles,
        arm.conditional_quality,
        arm.cache_hit_rate,
        arm.would_have_passed_rate,
        arm.disagreement,
    )
    return [
        *(count(arm.arm, name, number) for name, number in counts.items()),
        Metric(of=arm.arm, name="usd_total", value=arm.usd_total, shown=arm.usd_total_shown),
        *(
            Metric(of=arm.arm, name=one.estimand, value=one.value, low=one.low, high=one.high, shown=one.value_shown)
            for one in estimates
        ),
    ]


def _pair(pair: PairAnalysis) -> list[Metric]:
    of = f"{pair.first} against {pair.second}"
    named = (("success_difference", pair.success), ("cost_ratio", pair.cost), ("wall_ms_p90_ratio", pair.time))
    return [
        Metric(of=of, name=name, value=one.value, low=one.low, high=one.high, shown=one.value_shown)
        for name, one in named
    ]
