"""cost-index against independent arithmetic: enumerations, fractions by hand, and draws made from their label."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import inf

import pytest

from controller.analyse.cost_index import analyse_cost_index
from controller.domain.dataset import Charge, LogicalRunRow, Proofs
from controller.domain.outcome import EndKind
from controller.evidence.canonical import canonical
from controller.protocols.cost_index.estimates import Cell, CostIndexAnalysis
from controller.protocols.cost_index.show import describe
from tests.world.cost_index import case, cohort, whole
from tests.world.rounds import SEED, attempt

Value = Fraction | float


def picks(family: str, count: int, replicate: int) -> list[int]:
    """The clusters that one replicate draws, from the published recipe and the standard library alone."""
    label = f"shake128-mulshift64/v1|{SEED}|{family}|T={count}|".encode()
    stream = hashlib.shake_128(label + replicate.to_bytes(8, "little")).digest(8 * count)
    words = (int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(count))
    return [word * count >> 64 for word in words]


def text(value: Value) -> str:
    return "unbounded" if value == inf else str(value)


def ends(values: Sequence[Value]) -> tuple[str, str]:
    """The 250th and the 9,750th of 10,000."""
    ordered = sorted(values)
    assert len(ordered) == 10_000
    return text(ordered[249]), text(ordered[9_749])


def ratio(spend: Fraction | int, hits: int) -> Value:
    return Fraction(spend) / hits if hits else inf


def only(found: CostIndexAnalysis) -> Cell:
    assert len(found.cells) == 1
    return found.cells[0]


SPENDS = {"alpha": ["0.10", "0.25", "0.40", "1.00", "0.05"], "beta": ["0.3", "0.3", "0.3", "0.3", "0.3"]}
HITS = {"alpha": [1, 0, 1, 1, 0], "beta": [1, 1, 1, 0, 1]}


def test_the_interval_is_read_from_the_published_draws_which_all_stacks_share() -> None:
    found = analyse_cost_index(cohort(SPENDS, HITS), seed=SEED)
    drawn = [picks("refund", 5, replicate) for replicate in range(10_000)]
    for stack in ("alpha", "beta"):
        costs = [Fraction(cost) for cost in SPENDS[stack]]
        replicates = [ratio(sum(costs[i] for i in draw), sum(HITS[stack][i] for i in draw)) for draw in drawn]
        cell = found.cell("refund", stack)
        assert (cell.cost_per_outcome.low, cell.cost_per_outcome.high) == ends(replicates)
        assert cell.cost_per_outcome.value == text(ratio(sum(costs), sum(HITS[stack])))
        assert cell.cost_per_outcome.infinite_replicates == replicates.count(inf)
    assert found.cell("refund", "alpha").cost_per_outcome.value == "3/5"  # 1.80 / 3
    assert found.ranks == (250, 9_750)
    matrix = b"".join(index.to_bytes(4, "little") for draw in drawn for index in draw)
    assert found.cohorts[0].matrix_digest == "sha256:" + hashlib.sha256(matrix).hexdigest()


def test_independent_instances_have_wilsons_interval() -> None:
    """3 of 5: (3 + z²/2 -+ z sqrt(3 * 2 / 5 + z²/4)) / (5 + z²), with z² = 3.841459."""
    rate = analyse_cost_index(cohort(SPENDS, HITS), seed=SEED).cell("refund", "alpha").success_rate
    assert (rate.value, rate.method) == ("3/5", "wilson")
    assert rate.low is not None and rate.high is not None
    assert float(rate.low) == pytest.approx(0.23072, abs=5e-6)
    assert float(rate.high) == pytest.approx(0.88238, abs=5e-6)


def test_clustered_instances_are_resampled_as_whole_clusters_with_multiplicity() -> None:
    """Clusters of 1, 3 and 2 instances: a drawn cluster brings all its instances, twice when it is drawn twice."""
    made = {"c1": [1], "c2": [0, 1, 0], "c3": [1, 1]}
    rows = [
        case("refund", "alpha", f"{cluster}-{place}", cluster=cluster, success=bool(hit), usd=f"0.{place + 1}")
        for cluster, hits in made.items()
        for place, hit in enumerate(hits)
    ]
    cell = only(analyse_cost_index(rows, seed=SEED))
    names = sorted(made)
    rates, costs = [], []
    for replicate in range(10_000):
        drawn = [names[i] for i in picks("refund", 3, replicate)]
        hits = sum(sum(made[name]) for name in drawn)
        rates.append(Fraction(hits, sum(len(made[name]) for name in drawn)))
        spend = sum((Fraction(place + 1, 10) for name in drawn for place in range(len(made[name]))), Fraction(0))
        costs.append(ratio(spend, hits))
    assert cell.success_rate.method == "cluster-bootstrap"
    assert (cell.success_rate.low, cell.success_rate.high) == ends(rates)
    assert (cell.cost_per_outcome.low, cell.cost_per_outcome.high) == ends(costs)
    assert (cell.success_rate.value, cell.cost_per_outcome.value) == ("2/3", "1/4")  # 4 of 6; 1.00 / 4


def test_repeated_seeds_of_a_task_are_one_cluster() -> None:
    rows = [case("refund", "alpha", task, replicate=seed) for task in ("t1", "t2") for seed in (1, 2, 3)]
    found = analyse_cost_index(rows, seed=SEED)
    assert (found.cohorts[0].instances, found.cohorts[0].clusters, found.cohorts[0].independent) == (6, 2, False)
    assert only(found).success_rate.method == "cluster-bootstrap"


@pytest.mark.parametrize(
    ("spend", "hits"),
    [([5, 7, 9], [1, 1, 1]), ([5, 7, 9], [0, 1, 0]), ([1, 2, 3, 4], [1, 0, 1, 1]), ([3, 8], [1, 0])],
)
def test_bounds_agree_with_the_enumeration_of_every_resample(spend: list[int], hits: list[int]) -> None:
    """All T^T resamples are equally likely; no tail of these lies near enough to 2.5 % for chance to matter."""
    size = len(spend)
    ways = Counter(
        ratio(sum(spend[i] for i in draw), sum(hits[i] for i in draw)) for draw in product(range(size), repeat=size)
    )
    rows = cohort({"alpha": [str(cost) for cost in spend]}, {"alpha": hits})
    cost = only(analyse_cost_index(rows, seed=SEED)).cost_per_outcome
    assert (cost.low, cost.high) == (text(_exact_rank(ways, 25)), text(_exact_rank(ways, 975)))


def _exact_rank(ways: Counter[Value], per_mille: int) -> Value:
    seen = 0
    for value in sorted(ways):
        seen += ways[value]
        assert abs(1000 * seen - per_mille * ways.total()) > 5 * ways.total(), "choose a case away from the tail"
        if 1000 * seen >= per_mille * ways.total():
            return value
    raise AssertionError


def test_totals_resample_each_outcome_within_itself() -> None:
    first = cohort({"alpha": ["1", "2", "4"]}, {"alpha": [1, 0, 1]})
    second = cohort({"alpha": ["0.5", "8"]}, {"alpha": [1, 0]}, outcome="warranty")
    total = analyse_cost_index([*first, *second], seed=SEED).totals[0]
    rates, costs = [], []
    for replicate in range(10_000):
        one, two = picks("refund", 3, replicate), picks("warranty", 2, replicate)
        hits = sum([1, 0, 1][i] for i in one) + sum([1, 0][i] for i in two)
        spend = sum((Fraction([1, 2, 4][i]) for i in one), Fraction(0))
        spend += sum((Fraction(["1/2", "8"][i]) for i in two), Fraction(0))
        rates.append(Fraction(hits, 5))
        costs.append(ratio(spend, hits))
    assert (total.success_rate.value, total.cost_per_outcome.value, total.spend) == ("3/5", "31/6", "15.5")
    assert (total.success_rate.low, total.success_rate.high) == ends(rates)
    assert (total.cost_per_outcome.low, total.cost_per_outcome.high) == ends(costs)


def test_totals_lose_their_interval_when_one_outcome_has_a_single_cluster() -> None:
    rows = [*cohort(SPENDS, HITS), *cohort({"alpha": ["2"], "beta": ["1"]}, {"alpha": [1], "beta": [1]}, outcome="x")]
    found = analyse_cost_index(rows, seed=SEED)
    for total in found.totals:
        assert (total.success_rate.method, total.cost_per_outcome.method) == (None, None)
        assert total.cost_per_outcome.value is not None
    single = found.cell("x", "alpha")
    assert (single.cost_per_outcome.value, single.cost_per_outcome.low, single.cost_per_outcome.high) == (
        "2",
        None,
        None,
    )
    assert "fewer than two independent clusters" in single.cost_per_outcome.reason
    assert found.cohorts[1].label is None
    assert any("none for the totals: x." in sentence for sentence in found.limitations)


def test_no_success_has_no_number_and_is_not_free() -> None:
    found = analyse_cost_index(cohort({"alpha": ["1.5", "2"]}, {"alpha": [0, 0]}), seed=SEED)
    cell = only(found)
    cost = cell.cost_per_outcome
    assert (cost.value, cost.low, cost.high) == ("unbounded", "unbounded", "unbounded")
    assert (cost.value_shown, cell.spend, cell.failures) == ("undefined: no verified outcome", "3.5", 2)
    assert cell.success_rate.value == "0"
    assert any(sentence.startswith("No verified outcome") for sentence in found.limitations)


def test_free_successes_cost_exactly_zero_and_are_pointed_out() -> None:
    found = analyse_cost_index(cohort({"alpha": ["0", "0.00"]}, {"alpha": [1, 1]}), seed=SEED)
    assert only(found).cost_per_outcome.value == "0"
    assert any(sentence.startswith("No spend at all") for sentence in found.limitations)


def test_money_stays_exact_until_it_is_shown() -> None:
    cost = only(analyse_cost_index(cohort({"alpha": ["0.1"] * 3}, {"alpha": [1, 1, 1]}), seed=SEED)).cost_per_outcome
    assert cost.value == "1/10"
    third = only(analyse_cost_index(cohort({"alpha": ["1", "0", "0"]}, {"alpha": [1, 1, 1]}), seed=SEED))
    assert (third.cost_per_outcome.value, third.cost_per_outcome.value_shown) == ("1/3", "USD 0.3333")


def test_every_attempt_and_every_charge_within_the_boundary_counts() -> None:
    tried = [attempt(1, end=EndKind.PROVIDER_ERROR, usd="0.2", verified=None), attempt(2, usd="0.3")]
    charges = [
        Charge(id="a", kind="tool", amount="0.07", currency="USD"),
        Charge(id="b", kind="human_verification", amount="2", currency="USD"),
        Charge(id="c", kind="allocated_shared", amount="5", currency="USD"),
    ]
    rows = [case("refund", "alpha", "t1", attempts=tried, charges=charges), case("refund", "alpha", "t2", usd="1")]
    found = analyse_cost_index(rows, seed=SEED)
    cell = only(found)
    assert (cell.attempts, cell.spend) == (3, "3.57")
    assert {(one.kind, one.counted, one.amount) for one in cell.spent} == {
        ("model", True, "1.5"),
        ("tool", True, "0.07"),
        ("human_verification", True, "2"),
        ("allocated_shared", False, "5"),
    }
    assert any("outside the boundary of spend: allocated_shared" in sentence for sentence in found.limitations)


def test_unknown_spend_is_null_and_not_zero() -> None:
    rows = cohort(SPENDS, HITS)
    rows[3] = case("refund", "alpha", "refund-3", attempts=[attempt(usd=None)])
    found = analyse_cost_index(rows, seed=SEED, name="d.jsonl")
    cell = found.cell("refund", "alpha")
    assert (cell.spend, cell.settled_spend, cell.cost_per_outcome.value, cell.qualified) == (None, "0.8", None, False)
    assert "1 of 5" in cell.cost_per_outcome.reason
    assert cell.success_rate.value == "3/5"
    assert found.cell("refund", "beta").qualified
    assert failed(found)["settled-spend"] == "1 instance of unknown spend"
    assert found.faults == {"settled-spend": ("d.jsonl:4 refund-3.alpha.r1",)}
    assert found.totals[0].spend is None


@pytest.mark.parametrize("outcome", ["invalid", "missing"])
def test_an_unknown_outcome_stays_in_the_denominator_and_blocks_the_cost(outcome: str) -> None:
    rows = cohort(SPENDS, HITS)
    rows[0] = case("refund", "alpha", "refund-0", outcome=outcome)
    found = analyse_cost_index(rows, seed=SEED, name="d.jsonl")
    cell = found.cell("refund", "alpha")
    assert (cell.successes, cell.unknown, cell.instances, cell.success_rate.value) == (2, 1, 5, "2/5")
    assert (cell.success_rate_if_unknown_succeeded, cell.cost_per_outcome.value) == ("3/5", None)
    assert failed(found)["known-outcomes"] == "1 outcome unknown"
    assert found.faults["known-outcomes"] == ("d.jsonl:1 refund-0.alpha.r1",)
    assert cell.latency.censored == 1


def test_a_success_whose_model_was_refuted_is_unknown() -> None:
    rows = [
        case("refund", "alpha", "t1", proofs=Proofs(observed_model=False, receipt=True)),
        case("refund", "alpha", "t2"),
    ]
    assert only(analyse_cost_index(rows, seed=SEED)).unknown == 1


def failed(found: CostIndexAnalysis) -> dict[str, str]:
    return {gate.name: gate.detail for gate in found.gates if not gate.passed}


def test_a_whole_cohort_qualifies_and_still_needs_a_human_before_release() -> None:
    found = analyse_cost_index(whole(), seed=SEED, resamples=400)
    assert (found.qualified, failed(found), len(found.cells), len(found.totals)) == (True, {}, 60, 6)
    assert "actual human review of the exact report" in found.release_needs
    assert "names no winner" in found.conclusion
    assert [(cell.outcome, cell.stack) for cell in found.cells] == sorted((c.outcome, c.stack) for c in found.cells)


def test_a_missing_cell_is_named_and_nothing_is_dropped() -> None:
    rows = [row for row in whole() if (row.stratum, row.arm) != ("outcome-3", "stack-2")]
    found = analyse_cost_index(rows, seed=SEED, resamples=400)
    assert set(failed(found)) == {"all-cells", "same-instances", "known-outcomes", "settled-spend"}
    assert failed(found)["all-cells"] == (
        "59 of 60 cells, 10 outcomes and 6 stacks; without a row: outcome-3 / stack-2"
    )
    empty = found.cell("outcome-3", "stack-2")
    assert (empty.instances, empty.unknown, empty.without_row, empty.success_rate.value) == (3, 3, 3, "0")
    assert (empty.spend, empty.cost_per_outcome.value, empty.model) == (None, None, None)


def test_a_single_missing_instance_is_named() -> None:
    rows = whole()[1:]
    found = analyse_cost_index(rows, seed=SEED, resamples=400)
    assert failed(found)["same-instances"] == "1 predeclared instance without a row"
    assert found.faults["same-instances"] == ("task-0-0.stack-0.r1 has no row",)


def test_only_the_faults_and_the_round_name_what_must_not_be_published() -> None:
    """Task and fixture ids of a cohort with every kind of fault, in nothing else that the analysis says."""
    rows = [*cohort(SPENDS, HITS), case("warranty", "beta", "secret-task", cluster="fixture-refund-0", usd=None)]
    rows[0] = case("refund", "alpha", "refund-0", outcome="invalid", currency="EUR")
    found = analyse_cost_index(rows, seed=SEED)
    public = found.model_copy(update={"faults": {}, "round_id": ""}).model_dump_json()
    assert "secret-task" in str(found.faults)
    for private in ("secret-task", "refund-0", "fixture", "round-1", "dataset.jsonl"):
        assert private not in public, private


def test_a_long_list_of_faults_ends_with_a_count() -> None:
    many = [case("refund", "alpha", f"t{place}", outcome="invalid") for place in range(103)]
    found = analyse_cost_index(many, seed=SEED, resamples=400).faults["known-outcomes"]
    assert (len(found), found[-1]) == (101, "and 3 more")


def test_without_a_plan_fewer_cells_do_not_qualify() -> None:
    found = analyse_cost_index(whole(outcomes=9), seed=SEED, resamples=400)
    assert failed(found)["all-cells"].startswith("54 of 60 cells, 9 outcomes and 6 stacks; without a frozen plan")


def test_a_rehearsal_is_no_measurement() -> None:
    rows = [row.model_copy(update={"kind": "rehearsal"}) for row in whole()]
    found = analyse_cost_index(rows, seed=SEED, resamples=400)
    assert set(failed(found)) == {"measured"}
    assert found.conclusion.startswith("Rehearsal, not a measurement.")


def times(rows: Sequence[LogicalRunRow]) -> Cell:
    return only(analyse_cost_index(rows, seed=SEED, resamples=400))


def test_latency_is_of_verified_cases_and_other_ends_stand_apart() -> None:
    rows = [case("refund", "alpha", f"t{place:02d}", latency_ms=60_000 + 1_000 * place) for place in range(20)]
    rows += [
        case("refund", "alpha", "u1", success=False, latency_ms=61_000),
        case("refund", "alpha", "u2", success=False, latency_ms=64_000),
        case("refund", "alpha", "u3", success=False, end=EndKind.TIMEOUT, latency_ms=1_800_000),
        case("refund", "alpha", "u4", success=False, end=EndKind.WRITTEN_OFF, latency_ms=70_000),
        case("refund", "alpha", "u5", outcome="invalid", latency_ms=90_000),
        case("refund", "alpha", "u6", outcome="missing", attempts=[], latency_ms=None),
    ]
    latency = times(rows).latency
    # 60..79 s: the mean of the 10th and 11th is 69.5; ceil(.95 * 20) = 19th is 78.
    assert (latency.verified.cases, latency.verified.median_ms, latency.verified.p95_ms) == (20, "69500", "78000")
    assert (latency.failures.cases, latency.failures.median_ms) == (2, "62500")
    assert (latency.timeouts.cases, latency.timeouts.median_ms) == (1, "1800000")
    assert (latency.censored, latency.censored_longest_ms) == (3, 90_000)


def test_one_unrecorded_latency_leaves_no_quantile() -> None:
    latency = times([case("r", "a", "t1"), case("r", "a", "t2", latency_ms=None)]).latency.verified
    assert (latency.cases, latency.timed, latency.median_ms, latency.p95_ms) == (2, 1, None, None)


def test_no_verified_case_has_no_latency() -> None:
    latency = times([case("r", "a", "t1", success=False)]).latency.verified
    assert (latency.median_ms, latency.reason) == (None, "there is no verified case")


@pytest.mark.parametrize(
    ("start", "has"),
    [
        ("Small cohorts", lambda: cohort(SPENDS, HITS)),
        ("Sparse successes: refund / alpha (3)", lambda: cohort(SPENDS, HITS)),
        ("Degenerate resamples: every bound equals", lambda: cohort({"a": ["1", "1"]}, {"a": [1, 1]})),
        ("Resamples without a success are kept", lambda: cohort({"a": ["1", "1"]}, {"a": [1, 0]})),
        (
            "The cost per verified outcome has no upper bound: refund / a",
            lambda: cohort({"a": ["1", "1"]}, {"a": [1, 0]}),
        ),
        ("With fewer than 20 verified cases, p95 is the slowest", lambda: cohort(SPENDS, HITS)),
        ("Unresolved or censored cases", lambda: [case("r", "a", "t", outcome="invalid")]),
        ("The dataset has no charge of these kinds: compute", lambda: cohort(SPENDS, HITS)),
        ("Clusters in several outcomes", lambda: [case(o, "a", f"t-{o}", cluster="same") for o in "xy"]),
    ],
)
def test_limitations_are_said(start: str, has: Callable[[], list[LogicalRunRow]]) -> None:
    sentences = analyse_cost_index(has(), seed=SEED).limitations
    assert any(sentence.startswith(start) for sentence in sentences), sentences


def test_the_result_is_the_same_in_any_order_and_holds_no_float() -> None:
    rows = [*cohort(SPENDS, HITS), *cohort(SPENDS, HITS, outcome="warranty")]
    forwards = analyse_cost_index(rows, seed=SEED)
    assert analyse_cost_index(rows[::-1], seed=SEED) == forwards
    assert type(forwards).model_validate_json(canonical(forwards)) == forwards
    assert "refund / alpha: 3 of 5 verified" in describe(forwards)


def test_a_new_outcome_does_not_move_the_draws_of_another() -> None:
    alone = analyse_cost_index(cohort(SPENDS, HITS), seed=SEED)
    beside = analyse_cost_index([*cohort(SPENDS, HITS), *cohort(SPENDS, HITS, outcome="warranty")], seed=SEED)
    assert alone.cell("refund", "alpha").cost_per_outcome == beside.cell("refund", "alpha").cost_per_outcome
