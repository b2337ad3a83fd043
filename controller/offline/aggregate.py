"""The public numbers of a harness-round: what machines may quote of its analysis."""

from __future__ import annotations

from typing import Any, Dict, List

from .canonical import dumps

Record = Dict[str, Any]
COUNTS = ("logical_runs", "successes", "failures", "invalid", "missing", "attempts")
BEFORE_QUANTILES = ("success_rate", "cost_per_success", "tokens_per_success")
AFTER_QUANTILES = ("conditional_quality", "cache_hit_rate", "would_have_passed_rate", "disagreement")
OF_PAIR = (("success_difference", "success"), ("cost_ratio", "cost"), ("wall_ms_p90_ratio", "time"))


def aggregate_bytes(analysis: Record, sources: Dict[str, str]) -> bytes:
    """The canonical bytes of aggregate.json; `sources` are digests."""
    metrics: List[Record] = []
    for arm in analysis["arms"]:
        metrics += [_metric(arm["arm"], name, {"value": str(arm[name])}, f"{arm[name]:,}") for name in COUNTS]
        metrics.append(_metric(arm["arm"], "usd_total", {"value": arm["usd_total"]}, arm["usd_total_shown"]))
        estimates = [arm[name] for name in BEFORE_QUANTILES]
        estimates += [*arm["quantiles"], *(arm[name] for name in AFTER_QUANTILES)]
        metrics += [_metric(arm["arm"], one["estimand"], one, one["value_shown"]) for one in estimates]
    for pair in analysis["pairs"]:
        of = f"{pair['first']} against {pair['second']}"
        metrics += [_metric(of, name, pair[part], pair[part]["value_shown"]) for name, part in OF_PAIR]
    return dumps(
        {
            "schema_version": "fairtrial.aggregate/1",
            "protocol": analysis["protocol"],
            "kind": analysis["kind"],
            "sources": sources,
            "conclusion": analysis["headline"],
            "limitations": analysis["warnings"],
            "metrics": metrics,
        }
    )


def _metric(of: str, name: str, numbers: Record, shown: str) -> Record:
    return {
        "of": of,
        "name": name,
        "value": numbers["value"],
        "low": numbers.get("low"),
        "high": numbers.get("high"),
        "shown": shown,
    }
