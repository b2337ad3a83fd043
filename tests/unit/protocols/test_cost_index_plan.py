"""A frozen cost-index plan: whose cells are asked, which currencies combine, and which rows are refused by line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.analyse.cost_index import analyse_cost_index
from controller.domain.dataset import Charge, LogicalRunRow
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.cost_index.plan import Conversion, CostIndexPlan, Instance, OutcomeEntry
from tests.world.cost_index import case
from tests.world.rounds import MANIFEST, SEED

STACKS = ("alpha", "beta")
EURO = Conversion(from_currency="EUR", rate="1.08", dated="2026-09-30", source="central bank, reference rates")


def frozen(**changes: Any) -> CostIndexPlan:
    instances = tuple(Instance(task=f"t{place}", cluster=f"fixture-t{place}") for place in (1, 2))
    given = {
        "frozen_on": "2026-10-01",
        "seed": SEED,
        "outcomes": (OutcomeEntry(id="refund", instances=instances),),
        "stacks": STACKS,
    }
    return CostIndexPlan(**{**given, **changes})


def rows() -> list[LogicalRunRow]:
    return [case("refund", stack, task) for stack in STACKS for task in ("t1", "t2")]


def altered(index: int, **changes: Any) -> list[LogicalRunRow]:
    found = rows()
    found[index] = found[index].model_copy(update=changes)
    return found


def failed(found: CostIndexAnalysis) -> dict[str, str]:
    return {gate.name: gate.detail for gate in found.gates if not gate.passed}


def test_the_plans_own_cells_are_the_ones_that_qualify() -> None:
    found = analyse_cost_index(rows(), frozen(), plan_digest=MANIFEST)
    assert (found.qualified, failed(found), found.seed) == (True, {}, SEED)
    assert {gate.name: gate.detail for gate in found.gates}["all-cells"] == "2 of 2 cells, 1 outcome and 2 stacks"


def test_a_stack_without_any_row_is_still_in_the_table() -> None:
    found = analyse_cost_index([row for row in rows() if row.arm == "alpha"], frozen())
    assert found.cell("refund", "beta").unknown == 2
    assert "refund / beta" in failed(found)["all-cells"]


def test_a_plan_that_the_dataset_does_not_name_qualifies_nothing() -> None:
    found = analyse_cost_index(rows(), frozen(), plan_digest=sha256_digest(b"another"))
    assert set(failed(found)) == {"frozen-plan"}


def test_a_seed_other_than_the_frozen_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="seed: differs from the one that was frozen"):
        analyse_cost_index(rows(), frozen(), seed="0" * 64)


def test_currencies_combine_by_the_frozen_rule_exactly() -> None:
    found = analyse_cost_index(altered(0, currency="EUR"), frozen(conversions=(EURO,)))
    assert failed(found) == {}
    cell = found.cell("refund", "alpha")
    assert (cell.spend, cell.currency, cell.cost_per_outcome.value) == ("2.08", "USD", "26/25")
    detail = {gate.name: gate.detail for gate in found.gates}["one-currency"]
    assert detail == "USD; 1 EUR = 1.08 USD (central bank, reference rates, 2026-09-30)"


def test_currencies_are_never_combined_without_a_rule() -> None:
    found = analyse_cost_index(altered(0, currency="EUR"), seed=SEED, name="d.jsonl")
    assert failed(found)["one-currency"] == "EUR and USD without a frozen conversion, in 4 instances"
    assert found.faults["one-currency"][0] == "d.jsonl:1 t1.alpha.r1"
    cell = found.cell("refund", "alpha")
    assert (cell.spend, cell.settled_spend, cell.currency, cell.cost_per_outcome.value) == (None, None, None, None)
    assert [(one.amount, one.currency) for one in cell.spent] == [("1", "EUR"), ("1", "USD")]
    assert found.cell("refund", "beta").spend == "2"
    assert {total.stack: total.spend for total in found.totals} == {"alpha": None, "beta": "2"}


def test_one_currency_that_is_not_the_plans_is_not_taken_for_it() -> None:
    euros = [row.model_copy(update={"currency": "EUR"}) for row in rows()]
    assert "one-currency" in failed(analyse_cost_index(euros, frozen()))
    assert analyse_cost_index(euros, frozen(currency="EUR")).cell("refund", "alpha").spend_shown == "EUR 2.00"


def test_stacks_in_different_currencies_are_no_comparison() -> None:
    mixed = [row.model_copy(update={"currency": "EUR"}) if row.arm == "beta" else row for row in rows()]
    found = analyse_cost_index(mixed, seed=SEED)
    assert "one-currency" in failed(found)
    assert (found.currency, found.cell("refund", "beta").cost_per_outcome.value) == (None, "1")


def test_the_frozen_boundary_says_what_counts() -> None:
    charge = Charge(id="c", kind="allocated_shared", amount="3", currency="USD")
    counted = ("model", "allocated_shared")
    found = analyse_cost_index(altered(0, charges=(charge,)), frozen(counted=counted))
    assert found.cell("refund", "alpha").spend == "5"


CHARGE = Charge(id="c", kind="tool", amount="1", currency="USD")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*rows(), rows()[1]], "d.jsonl:5: t2.alpha.r1 appears twice, first on line 2"),
        (altered(2, arm="gamma"), "d.jsonl:3: arm: 'gamma' is not in the plan"),
        (altered(2, task="t9"), "d.jsonl:3: task: 't9' is not in the plan"),
        (
            altered(2, stratum="warranty"),
            "d.jsonl:3: stratum: 'warranty', but the plan has the task in outcome 'refund'",
        ),
        (altered(2, cluster="other"), "d.jsonl:3: cluster: 'other', but the plan has the task in 'fixture-t1'"),
        (altered(2, replicate=2), "d.jsonl:3: replicate: 2 exceeds the planned 1"),
        (altered(2, challenge="tamper"), "d.jsonl:3: challenge: a planted tamper case is no run of this protocol"),
        (altered(2, charges=(CHARGE, CHARGE)), "d.jsonl:3: charges: 'c' is counted twice, first on line 3"),
        (altered(2, round_id="round-2"), "d.jsonl:3: round_id: 'round-2' differs from 'round-1' on line 1"),
        (altered(3, model="later"), "d.jsonl:4: model: 'later' differs from 'rehearsal-1' on line 3; an arm has one"),
        (altered(2, kind="rehearsal"), "a rehearsal is never pooled with a measurement"),
        (altered(2, stratum="rückgabe"), "d.jsonl:3: stratum: an outcome's name is 1 to 80 printable ASCII"),
    ],
)
def test_rows_that_contradict_the_plan_or_one_another_are_refused_by_line(
    given: list[LogicalRunRow], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        analyse_cost_index(given, frozen(), name="d.jsonl")
    assert message in str(refused.value)


def conversion(**changes: str) -> list[dict[str, str]]:
    return [{**EURO.model_dump(mode="json"), **changes}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stacks": ["alpha", "alpha"]}, "stacks: 'alpha' is given twice"),
        ({"counted": ["tool"]}, "counted: the model's charges are always within the boundary"),
        ({"conversions": conversion(dated="2026-10-02")}, "EUR: dated 2026-10-02, after the freeze on 2026-10-01"),
        ({"conversions": conversion(from_currency="USD")}, "USD needs no conversion into itself"),
        ({"conversions": conversion(rate="0.00")}, "a rate of zero makes spend vanish"),
        ({"conversions": conversion() * 2}, "conversions: 'EUR' is given twice"),
        ({"conversions": conversion(rate="1e3")}, "rate"),
        ({"conversions": conversion(source="")}, "source"),
        ({"outcomes": []}, "outcomes"),
        ({"methodology": "2.0"}, "methodology"),
    ],
)
def test_a_nonsense_plan_is_refused(changes: dict[str, Any], message: str) -> None:
    text = json.dumps({**frozen().model_dump(mode="json"), **changes})
    with pytest.raises(ValueError, match=message):
        CostIndexPlan.model_validate_json(text)


def test_few_rows_that_predeclare_too_many_cases_are_refused_at_once() -> None:
    many = [case("refund", f"stack-{place}", f"task-{place}") for place in range(1_001)]
    with pytest.raises(InvalidInput, match="1,001 rows predeclare 1,002,001 cases; at most 1,000,000"):
        analyse_cost_index(many, seed=SEED)


def test_few_rows_that_predeclare_too_many_cells_are_refused_at_once() -> None:
    many = [case(f"outcome-{place}", f"stack-{place}", f"task-{place}") for place in range(101)]
    with pytest.raises(InvalidInput, match="101 outcomes and 101 stacks make 10,201 cells; at most 10,000"):
        analyse_cost_index(many, seed=SEED)


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "2026-00-10", "0000-01-01", "2026-1-1", "20260101"])
def test_a_day_that_no_calendar_has_is_refused(day: str) -> None:
    with pytest.raises(ValueError, match="frozen_on"):
        CostIndexPlan.model_validate_json(json.dumps({**frozen().model_dump(mode="json"), "frozen_on": day}))


def test_more_clusters_than_memory_has_room_for_are_refused_before_anything_is_drawn() -> None:
    many = [case("refund", "alpha", f"task-{place}") for place in range(4_001)]
    with pytest.raises(InvalidInput, match="4,001 clusters; at most 4,000"):
        analyse_cost_index(many, seed=SEED)
