"""Any cohort: bounds, totals and counts equal those of a plain program over the published draws, in fractions."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import ceil, inf

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse.cost_index import analyse_cost_index
from controller.domain.dataset import LogicalRunRow
from tests.world.cost_index import case
from tests.world.rounds import SEED

RESAMPLES = 200
STACKS = ("alpha", "beta")
MONEY = st.one_of(
    st.just("0"),
    st.integers(1, 10**6).map(lambda cents: f"{cents // 100}.{cents % 100:02d}"),
    st.integers(1, 10**43 - 1).map(lambda tiny: f"{tiny // 10**30}.{tiny % 10**30:030d}"),  # as large as a row may hold
)
INSTANCE = st.tuples(st.integers(0, 3), st.lists(st.tuples(st.booleans(), MONEY), min_size=2, max_size=2))
COHORT = st.dictionaries(
    st.sampled_from(["refund", "warranty"]), st.lists(INSTANCE, min_size=1, max_size=6), min_size=1
)

Cohort = dict[str, list[tuple[int, list[tuple[bool, str]]]]]
Ends = tuple[str | None, str | None]
NO_INTERVALS: tuple[Ends, Ends] = ((None, None), (None, None))
Cells = dict[str, tuple[int, int, Fraction]]  # by cluster: successes, instances, spend


def rows_of(cohort: Cohort) -> list[LogicalRunRow]:
    return [
        case(outcome, stack, f"{outcome}-{place}", cluster=f"{outcome}-c{cluster}", usd=usd, success=hit)
        for outcome, instances in cohort.items()
        for place, (cluster, cells) in enumerate(instances)
        for stack, (hit, usd) in zip(STACKS, cells, strict=True)
    ]


def by_cluster(outcome: str, cohort: Cohort, stack: int) -> Cells:
    found: Cells = {}
    for cluster, cells in cohort[outcome]:
        hit, usd = cells[stack]
        hits, count, spend = found.get(f"{outcome}-c{cluster}", (0, 0, Fraction(0)))
        found[f"{outcome}-c{cluster}"] = (hits + hit, count + 1, spend + Fraction(usd))
    return dict(sorted(found.items()))


def drawn(outcome: str, cells: Cells, replicate: int) -> list[tuple[int, int, Fraction]]:
    count, values = len(cells), list(cells.values())
    label = f"shake128-mulshift64/v1|{SEED}|{outcome}|T={count}|".encode()
    stream = hashlib.shake_128(label + replicate.to_bytes(8, "little")).digest(8 * count)
    return [values[int.from_bytes(stream[8 * i : 8 * i + 8], "little") * count >> 64] for i in range(count)]


def interval(replicates: list[Fraction | float]) -> Ends:
    ordered = sorted(replicates)
    low, high = (ordered[ceil(RESAMPLES * part / 1000) - 1] for part in (25, 975))
    return text(low), text(high)


def text(end: Fraction | float) -> str:
    return "unbounded" if end == inf else str(end)


def expected(outcomes: list[str], cohort: Cohort, stack: int) -> tuple[Ends, Ends]:
    """The intervals of rate and cost over these outcomes, each resampled within itself."""
    cells = {outcome: by_cluster(outcome, cohort, stack) for outcome in outcomes}
    rates: list[Fraction | float] = []
    costs: list[Fraction | float] = []
    for replicate in range(RESAMPLES):
        parts = [part for outcome in outcomes for part in drawn(outcome, cells[outcome], replicate)]
        hits, count = sum(part[0] for part in parts), sum(part[1] for part in parts)
        rates.append(Fraction(hits, count))
        costs.append(sum((part[2] for part in parts), Fraction(0)) / hits if hits else inf)
    return interval(rates), interval(costs)


@settings(max_examples=40, deadline=None)
@given(COHORT)
def test_every_bound_is_that_of_a_plain_program(cohort: Cohort) -> None:
    found = analyse_cost_index(rows_of(cohort), seed=SEED, resamples=RESAMPLES)
    for outcome, instances in cohort.items():
        clusters = {cluster for cluster, _ in instances}
        for place, stack in enumerate(STACKS):
            cell = found.cell(outcome, stack)
            assert cell.successes == sum(cells[place][0] for _, cells in instances)
            assert Fraction(cell.spend or "-1") == sum(Fraction(cells[place][1]) for _, cells in instances)
            rate, cost = expected([outcome], cohort, place) if len(clusters) >= 2 else NO_INTERVALS
            assert (cell.cost_per_outcome.low, cell.cost_per_outcome.high) == cost
            if len(clusters) == len(instances):
                assert cell.success_rate.method == "wilson"
            else:
                assert (cell.success_rate.low, cell.success_rate.high) == rate
    resampled = all(len({cluster for cluster, _ in instances}) >= 2 for instances in cohort.values())
    for place, total in enumerate(found.totals):
        rate, cost = expected(sorted(cohort), cohort, place) if resampled else NO_INTERVALS
        assert (total.success_rate.low, total.success_rate.high) == rate
        assert (total.cost_per_outcome.low, total.cost_per_outcome.high) == cost
