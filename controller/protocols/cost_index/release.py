"""What a cost-index says to machines that quote it, and when it may be released."""

from __future__ import annotations

from controller.domain.aggregate import Metric, count
from controller.protocols.cost_index.estimates import Cell, CostIndexAnalysis, Estimate, Latency, Total


def metrics(analysis: CostIndexAnalysis) -> tuple[Metric, ...]:
    """Every cell, then every stack over all outcomes."""
    found = [metric for cell in analysis.cells for metric in _cell(cell)]
    return (*found, *(metric for total in analysis.totals for metric in _sums(total.stack, total)))


def release_gates(analysis: CostIndexAnalysis) -> tuple[str, ...]:
    """The monthly release's conditions that a dataset can show and that do not hold.

    The others are a person's review of the exact report and the authority to publish it: an approval shows both.
    """
    return tuple(f"{gate.name}: {gate.detail}" for gate in analysis.gates if not gate.passed)


def _cell(cell: Cell) -> list[Metric]:
    of = f"{cell.outcome} on {cell.stack}"
    return [*_sums(of, cell), *_latency(of, cell.latency)]


def _sums(of: str, found: Cell | Total) -> list[Metric]:
    counts = {
        "instances": found.instances,
        "attempts": found.attempts,
        "successes": found.successes,
        "failures": found.failures,
        "unknown": found.unknown,
    }
    return [
        *(count(of, name, number) for name, number in counts.items()),
        Metric(
            of=of, name=f"spend_{(found.currency or 'unknown').lower()}", value=found.spend, shown=found.spend_shown
        ),
        _estimate(of, "success_rate", found.success_rate),
        _estimate(of, "cost_per_outcome", found.cost_per_outcome),
    ]


def _latency(of: str, latency: Latency) -> list[Metric]:
    times = latency.verified
    return [
        Metric(of=of, name="latency_ms_p50", value=times.median_ms, shown=times.shown),
        Metric(of=of, name="latency_ms_p95", value=times.p95_ms, shown=times.shown),
        count(of, "censored", latency.censored),
    ]


def _estimate(of: str, name: str, one: Estimate) -> Metric:
    return Metric(of=of, name=name, value=one.value, low=one.low, high=one.high, shown=one.value_shown)
