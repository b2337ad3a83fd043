"""What a careful reader of a cost index must know before quoting a number from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from controller.analyse.cost_cohort import OutcomeCases
from controller.domain.exact import UNBOUNDED_TEXT
from controller.protocols.cost_index.estimates import Cell, Total
from controller.protocols.cost_index.plan import COUNTED, OUTCOMES, STACKS
from controller.protocols.cost_index.rules import named

CLUSTERS_FEW: Final = 50  # below this, percentile intervals cover up to four points less than they say
SUCCESSES_FEW: Final = 3  # of nine clusters or more, so few leave 1 in 40 resamples without any, and no upper bound
P95_CASES_MIN: Final = 20  # with fewer, the 95th percentile by nearest rank is the maximum

NOTES: Final = (
    "Intervals at 95 % apply to success rate and cost; they describe sampling uncertainty under this design, and "
    "promise nothing about operation.",
    "Median and p95 latency are descriptive measurements of the verified cases, without intervals.",
    "Cells stand in the order of their names. Overlapping intervals, or a synthetic benchmark, show neither a winner "
    "nor a cause.",
    "More replicates cannot create more independent evidence.",
)


def limitations(
    outcomes: Sequence[OutcomeCases],
    cells: Sequence[Cell],
    totals: Sequence[Total],
    resamples: int,
    *,
    planned: bool,
) -> tuple[str, ...]:
    """One sentence for each limitation that these data have."""
    found = [*_of_cohorts(outcomes, planned=planned), *_of_resamples(cells, totals, resamples), *_of_cases(cells)]
    return tuple(found)


def _of_cohorts(outcomes: Sequence[OutcomeCases], *, planned: bool) -> Iterator[str]:
    if not planned:
        yield "No frozen plan was given: whatever the dataset names counts as predeclared."
    stacks = len(outcomes[0].stacks)
    if (len(outcomes), stacks) != (OUTCOMES, STACKS):
        yield (
            f"The methodology asks {OUTCOMES} outcomes and {STACKS} stacks; these are {len(outcomes)} and {stacks}, "
            "which makes no monthly index."
        )
    few = [f"{one.outcome} ({len(one.clusters)})" for one in outcomes if len(one.clusters) < CLUSTERS_FEW]
    if few:
        yield (
            f"Small cohorts: fewer than {CLUSTERS_FEW} independent clusters make percentile intervals too narrow: "
            f"{named(few)}."
        )
    single = [one.outcome for one in outcomes if len(one.clusters) < 2]
    if single:
        yield f"Fewer than two clusters, so no cost interval there and none for the totals: {named(single)}."
    shared = [one.outcome for one in outcomes if not one.independent]
    if shared:
        yield f"Instances share fixtures or seeds, so whole clusters are resampled: {named(shared)}."
    seen = Counter(cluster for one in outcomes for cluster in one.clusters)
    across = sum(count > 1 for count in seen.values())
    if across:
        yield f"Clusters in several outcomes are resampled in each as if apart: {across} of {len(seen)}."


def _of_resamples(cells: Sequence[Cell], totals: Sequence[Total], resamples: int) -> Iterator[str]:
    none = [_name(cell) for cell in cells if not cell.successes]
    if none:
        yield f"No verified outcome, so the cost of one is undefined and nothing ranks there: {named(none)}."
    sparse = [f"{_name(cell)} ({cell.successes})" for cell in cells if 0 < cell.successes <= SUCCESSES_FEW]
    if sparse:
        yield f"Sparse successes: {named(sparse)}."
    infinite = [
        f"{_name(cell)} ({cell.cost_per_outcome.infinite_replicates:,} of {resamples:,})"
        for cell in cells
        if cell.successes and cell.cost_per_outcome.infinite_replicates
    ]
    if infinite:
        yield f"Resamples without a success are kept as infinite costs: {named(infinite)}."
    unbounded = [_name(cell) for cell in cells if cell.successes and cell.cost_per_outcome.high == UNBOUNDED_TEXT]
    unbounded += [total.stack for total in totals if total.successes and total.cost_per_outcome.high == UNBOUNDED_TEXT]
    if unbounded:
        yield f"The cost per verified outcome has no upper bound: {named(unbounded)}."
    equal = [
        f"{_name(cell)} ({thing})"
        for cell in cells
        for thing, one in (("rate", cell.success_rate), ("cost", cell.cost_per_outcome))
        if one.method == "cluster-bootstrap" and one.low == one.high != UNBOUNDED_TEXT
    ]
    if equal:
        yield f"Degenerate resamples: every bound equals the estimate, which is no certainty: {named(equal)}."


def _of_cases(cells: Sequence[Cell]) -> Iterator[str]:
    censored = [f"{_name(cell)} ({cell.latency.censored})" for cell in cells if cell.latency.censored]
    if censored:
        yield f"Unresolved or censored cases, in no latency: {named(censored)}."
    untimed = [_name(cell) for cell in cells if cell.latency.verified.timed < cell.latency.verified.cases]
    if untimed:
        yield f"The latency of some verified cases is not recorded, so no quantile is given: {named(untimed)}."
    few = [_name(cell) for cell in cells if 0 < cell.latency.verified.timed < P95_CASES_MIN]
    if few:
        yield f"With fewer than {P95_CASES_MIN} verified cases, p95 is the slowest one: {named(few)}."
    free = [_name(cell) for cell in cells if cell.spend is not None and set(cell.spend) <= {"0", "."}]
    if free:
        yield f"No spend at all, as the rows say: {named(free)}."
    assigned = [f"{_name(cell)} ({cell.estimated_spend})" for cell in cells if cell.estimated_spend]
    if assigned:
        yield f"Usage of some requests was assigned from the provider's report: {named(assigned)}."
    beside = sorted({one.kind for cell in cells for one in cell.spent if not one.counted})
    if beside:
        yield f"Disclosed, and outside the boundary of spend: {', '.join(beside)}."
    absent = sorted(set(COUNTED) - {one.kind for cell in cells for one in cell.spent})
    if absent:
        yield f"The dataset has no charge of these kinds: {', '.join(absent)}."


def _name(cell: Cell) -> str:
    return f"{cell.outcome} / {cell.stack}"
