"""Step 9, second half: the analysis of a harness-round, from the rows of the dataset to its bytes."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any, Dict, List, Sequence

from .canonical import dumps
from .decision import NONE
from .drawn_arm import DrawnArm
from .draws import Draws
from .estimates import arm_record
from .harness_round import HarnessRound
from .holm import ALPHA, tail
from .pairs import pair_records
from .plan import Plan
from .schedule import GENERATOR
from .shown import numbered
from .table import Row, tables

INTERVAL_NOTE = (
    "An interval excludes zero exactly when Holm's test at 5 % rejects. "
    "The intervals are not a joint 95 % band for the sizes of the differences."
)
Record = Dict[str, Any]


def analysis_bytes(plan: Plan, analysis: HarnessRound, manifest_digest: str, rows: List[Row]) -> bytes:
    """The canonical bytes of analysis.json."""
    is_sealed = any(row["visibility"] == "sealed" for row in rows)
    chosen = [row for row in rows if row["visibility"] == "sealed"] if is_sealed else rows
    tasks, arms = tables(plan, chosen)
    everything = {arm.name: arm for arm in tables(plan, rows)[1]}
    draws = Draws(plan.seed, len(tasks), analysis.resamples)
    drawn = {arm.name: DrawnArm(arm, draws) for arm in arms}
    records = [arm_record(one, tasks, everything[name]) for name, one in drawn.items()]
    pairs = pair_records(drawn, analysis, plan.replicates)
    own = sorted(arm.id for arm in plan.arms if arm.is_own)
    listed = "".join(f"{task}\n" for task in tasks).encode()
    clusters = len({row["cluster"] for row in chosen})
    return dumps(
        {
            "schema_version": "fairtrial.analysis/1",
            "protocol": "harness-round",
            "round_id": plan.round_id,
            "kind": plan.kind,
            "manifest_digest": manifest_digest,
            "scope": "sealed" if is_sealed else "all",
            "task_ids": tasks,
            "clusters": clusters,
            "replicates": plan.replicates,
            "own_arms": own,
            "alpha": "1/20",
            "margin_points": analysis.margin_points,
            "saving_percent": analysis.saving_percent,
            "resampling": {
                "generator": GENERATOR,
                "label": draws.label,
                "seed": plan.seed,
                "resamples": analysis.resamples,
                "tasks": len(tasks),
                "tasks_digest": f"sha256:{hashlib.sha256(listed).hexdigest()}",
                "matrix_digest": draws.digest,
            },
            "arms": records,
            "pairs": pairs,
            "headline": _headline(pairs, own),
            "tally": _tally(pairs),
            "interval_note": INTERVAL_NOTE,
            "warnings": _warnings(len(tasks), clusters, rows, records, pairs, analysis.resamples),
        }
    )


def _headline(pairs: Sequence[Record], own: Sequence[str]) -> str:
    """Where an arm of ours lost, each winner and the difference come before the tally, the largest first."""
    if len(pairs) <= 1:
        return _tally(pairs)
    decided = [(pair["decision"], pair) for pair in pairs]
    lost = [pair for decision, pair in decided if decision["loser"] in own and decision["winner"] not in own]
    lost.sort(key=lambda pair: (pair["decision"]["rule"] != "success", -abs(Fraction(pair["success"]["value"]))))
    return " ".join([*(str(pair["sentence"]) for pair in lost), _tally(pairs)])


def _tally(pairs: Sequence[Record]) -> str:
    if not pairs:
        return "No comparison was planned."
    if len(pairs) == 1:
        return str(pairs[0]["sentence"])
    rules = [pair["decision"]["rule"] for pair in pairs]
    by_success, by_efficiency = rules.count("success"), rules.count("cost") + rules.count("time")
    if by_success + by_efficiency == 0:
        return f"All {len(pairs)} planned comparisons: {NONE}."
    kinds = ((by_success, "in success"), (by_efficiency, "in efficiency at tied success"))
    told = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
    return f"{by_success + by_efficiency} of {len(pairs)} planned comparisons show a reliable difference: {told}."


def _warnings(
    tasks: int, clusters: int, rows: Sequence[Row], arms: Sequence[Record], pairs: Sequence[Record], resamples: int
) -> List[str]:
    """What a careful reader must know."""
    found = []
    if tasks < 50:
        found.append(f"Only {numbered(tasks, 'task')}: percentile intervals from fewer than 50 tasks are too narrow.")
    elif tasks < 100 and len(pairs) > 10:
        found.append(
            f"Only {tasks} tasks for {len(pairs)} comparisons: below 100 tasks, Holm's extreme "
            "tails can reject too often."
        )
    if pairs and tail(resamples, ALPHA / len(pairs)) == 0:
        found.append(
            f"{resamples:,} resamples are too few for {len(pairs)} comparisons: Holm's first step can reject nothing, "
            "so no difference can be found."
        )
    if clusters < tasks:
        found.append(
            f"The {tasks} tasks come from {numbered(clusters, 'cluster')}; "
            "tasks of one cluster are resampled as if independent."
        )
    if len({row["model"] for row in rows}) > 1:
        found.append("The arms ran on different models, so a difference between arms is not one between harnesses.")
    for arm in arms:
        if arm["invalid"] or arm["missing"]:
            found.append(
                f"{arm['arm']}: {arm['invalid']} invalid and {arm['missing']} missing logical runs count as not "
                "successful; its comparisons are not qualified."
            )
        if arm["cost_per_success"]["value"] == "0":
            found.append(f"{arm['arm']}: its successes cost nothing, so no other arm can be cheaper by a share.")
    return [*found, *_seed_warning(pairs)]


def _seed_warning(pairs: Sequence[Record]) -> List[str]:
    sensitive = [
        f"{pair['first']} and {pair['second']} ({criterion})"
        for pair in pairs
        for criterion in ("success", "cost", "time")
        if pair[criterion]["seed_sensitive"]
    ]
    if not sensitive:
        return []
    named = "; ".join(sensitive) if len(sensitive) <= 6 else "marked in the comparisons"
    return [f"Another seed might decide {numbered(len(sensitive), 'comparison')} otherwise: {named}."]
