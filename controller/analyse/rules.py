"""The whole analysis as one pure function of the rows and the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from controller.analyse.arm_estimates import arm_analysis
from controller.analyse.arms import draw_arms
from controller.analyse.dataset import check_rows
from controller.analyse.draws import Resampler
from controller.analyse.holm import ALPHA, tail_rank
from controller.analyse.pairs import pair_analyses
from controller.analyse.plan import PlanInputs
from controller.analyse.table import Table, scope_of, table_of
from controller.domain.dataset import LogicalRunRow
from controller.domain.stream import GENERATOR
from controller.domain.words import numbered
from controller.protocols.harness_round.decision import NO_RELIABLE_DIFFERENCE
from controller.protocols.harness_round.estimates import Analysis, ArmAnalysis, PairAnalysis, Resampling

INTERVAL_NOTE: Final = (
    "An interval excludes zero exactly when Holm's test at 5 % rejects. "
    "The intervals are not a joint 95 % band for the sizes of the differences."
)
TASKS_FEW: Final = 50  # below it percentile intervals cover up to four points too little
TASKS_FEW_FOR_MANY_PAIRS: Final = 100
PAIRS_MANY: Final = 10
SENSITIVE_NAMED_MAX: Final = 6


def analyse(rows: Sequence[LogicalRunRow], plan: PlanInputs) -> Analysis:
    """Estimate every arm, compare every planned pair and decide.

    The same rows in any order and the same plan give the same result on any machine. Raises InvalidInput naming every
    row that contradicts the plan or another row.
    """
    check_rows(rows, plan)
    table = table_of(rows, plan, scope_of(rows))
    everything = table if table.scope == "all" else table_of(rows, plan, "all")
    resampler = Resampler.of(plan.seed, len(table.tasks), plan.resamples)
    draws = draw_arms(list(table.arms.values()), resampler)
    arms = tuple(arm_analysis(draws[arm], table.tasks, everything.arms[arm]) for arm in sorted(draws))
    pairs = pair_analyses(draws, plan, len(table.tasks))
    listed = "".join(f"{task}\n" for task in table.tasks).encode()
    return Analysis(
        round_id=rows[0].round_id,
        kind=rows[0].kind,
        manifest_digest=rows[0].manifest_digest,
        scope="sealed" if table.scope == "sealed" else "all",
        task_ids=table.tasks,
        clusters=table.clusters,
        replicates=table.replicates,
        own_arms=plan.own_arms,
        margin_points=plan.margin_points,
        saving_percent=plan.saving_percent,
        resampling=Resampling(
            generator=GENERATOR,
            label=resampler.stream,
            seed=plan.seed,
            resamples=plan.resamples,
            tasks=len(table.tasks),
            tasks_digest=f"sha256:{hashlib.sha256(listed).hexdigest()}",
            matrix_digest=resampler.digest,
        ),
        arms=arms,
        pairs=pairs,
        headline=headline(pairs, plan.own_arms),
        tally=tally(pairs),
        interval_note=INTERVAL_NOTE,
        warnings=warnings(table, rows, arms, pairs, plan.resamples),
    )


def headline(pairs: Sequence[PairAnalysis], own_arms: Sequence[str] = ()) -> str:
    """The conclusion. Where an arm of ours lost, each winner and the measured difference come before the tally."""
    told = tally(pairs)
    if len(pairs) <= 1:
        return told
    lost = [pair for pair in pairs if pair.decision.loser in own_arms and pair.decision.winner not in own_arms]
    return " ".join([*(pair.sentence for pair in sorted(lost, key=_by_size)), told])


def _by_size(pair: PairAnalysis) -> tuple[bool, Fraction]:
    """Success before efficiency, then the larger difference of success rates."""
    return pair.decision.rule != "success", -abs(Fraction(pair.success.value or 0))


def tally(pairs: Sequence[PairAnalysis]) -> str:
    """The pair's own sentence for one pair, a count of reliable differences for more."""
    if not pairs:
        return "No comparison was planned."
    if len(pairs) == 1:
        return pairs[0].sentence
    by_success = sum(pair.decision.rule == "success" for pair in pairs)
    by_efficiency = sum(pair.decision.rule in ("cost", "time") for pair in pairs)
    if by_success + by_efficiency == 0:
        return f"All {len(pairs)} planned comparisons: {NO_RELIABLE_DIFFERENCE}."
    kinds = ((by_success, "in success"), (by_efficiency, "in efficiency at tied success"))
    told = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
    return f"{by_success + by_efficiency} of {len(pairs)} planned comparisons show a reliable difference: {told}."


def warnings(
    table: Table,
    rows: Sequence[LogicalRunRow],
    arms: Sequence[ArmAnalysis],
    pairs: Sequence[PairAnalysis],
    resamples: int,
) -> tuple[str, ...]:
    """What a careful reader must know before quoting the headline."""
    found = []
    tasks = len(table.tasks)
    if tasks < TASKS_FEW:
        found.append(
            f"Only {numbered(tasks, 'task')}: percentile intervals from fewer than {TASKS_FEW} tasks are too narrow."
        )
    elif tasks < TASKS_FEW_FOR_MANY_PAIRS and len(pairs) > PAIRS_MANY:
        found.append(
            f"Only {tasks} tasks for {len(pairs)} comparisons: below {TASKS_FEW_FOR_MANY_PAIRS} tasks, Holm's extreme "
            "tails can reject too often."
        )
    if pairs and tail_rank(resamples, ALPHA / len(pairs)) == 0:
        found.append(
            f"{resamples:,} resamples are too few for {len(pairs)} comparisons: Holm's first step can reject nothing, "
            "so no difference can be found."
        )
    if table.clusters < tasks:
        found.append(
            f"The {tasks} tasks come from {numbered(table.clusters, 'cluster')}; "
            "tasks of one cluster are resampled as if independent."
        )
    if len({row.model for row in rows}) > 1:
        found.append("The arms ran on different models, so a difference between arms is not one between harnesses.")
    for arm in arms:
        if arm.invalid or arm.missing:
            found.append(
                f"{arm.arm}: {arm.invalid} invalid and {arm.missing} missing logical runs count as not successful; "
                "its comparisons are not qualified."
            )
        if arm.cost_per_success.value == "0":
            found.append(f"{arm.arm}: its successes cost nothing, so no other arm can be cheaper by a share.")
    sensitive = [
        f"{pair.first} and {pair.second} ({one.criterion})"
        for pair in pairs
        for one in (pair.success, pair.cost, pair.time)
        if one.seed_sensitive
    ]
    if sensitive:
        named = "; ".join(sensitive) if len(sensitive) <= SENSITIVE_NAMED_MAX else "marked in the comparisons"
        found.append(f"Another seed might decide {numbered(len(sensitive), 'comparison')} otherwise: {named}.")
    return tuple(found)
