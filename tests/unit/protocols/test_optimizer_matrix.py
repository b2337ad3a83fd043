"""optimizer-matrix: every gate at its threshold, unknown costs, planted cases, and what makes a report impossible."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.domain.dataset import Charge, LogicalRunRow, Proofs
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical
from controller.protocols.optimizer_matrix.estimates import GateResult, OptimizerAnalysis
from controller.protocols.optimizer_matrix.gates import against_prompt, frontier_validity, funded_gate, needed, saves
from controller.protocols.optimizer_matrix.plan import OptimizerPlan, Roles, Selection
from controller.protocols.optimizer_matrix.show import describe
from tests.world.policy_matrix import Cells, all_planted, matrix, plan, planted, policy_run
from tests.world.rounds import MANIFEST, attempt

CHEAP = {"adaptive": "0.7", "always-frontier": "1", "prompt-only": "0.8"}


def runs(count: int, *, start: int = 0) -> set[tuple[int, int]]:
    """The first so many runs from a scenario onwards, scenario by scenario."""
    return {(start + place // 3, 1 + place % 3) for place in range(count)}


def analysed(costs: dict[str, str] | None = None, lost: Cells | None = None) -> OptimizerAnalysis:
    return analyse_optimizer_matrix([*matrix(costs or CHEAP, lost), *all_planted()])


def conditions(gate: GateResult) -> dict[str, bool | None]:
    return {one.name: one.passed for one in gate.conditions}


@pytest.mark.parametrize(
    ("adaptive", "frontier", "absolute", "relative"),
    [(24, 25, True, True), (23, 24, False, True), (28, 30, True, False), (29, 30, True, True), (24, 26, True, False)],
)
def test_completion_thresholds_are_integers(adaptive: int, frontier: int, absolute: bool, relative: bool) -> None:
    """80 % of 30 is 24; 95 % of 30 is 28.5, of 26 24.7, of 25 23.75."""
    lost = {"adaptive": runs(30 - adaptive, start=4), "always-frontier": runs(30 - frontier, start=4)}
    found = funded_gate(adaptive, frontier, 30, adaptive_cost=Fraction(70), frontier_cost=Fraction(100))
    assert (found.absolute_80, found.relative_95, found.passed) == (absolute, relative, absolute and relative)
    whole = analysed(lost={policy: cells for policy, cells in lost.items() if cells})
    assert (whole.policy("adaptive").verified, whole.policy("always-frontier").verified) == (adaptive, frontier)
    assert conditions(whole.funded)["absolute-completion"] is absolute


@pytest.mark.parametrize(("each", "met"), [("0.7", True), ("0.70001", False)])
def test_exactly_thirty_percent_lower_is_enough(each: str, met: bool) -> None:
    found = analysed({**CHEAP, "adaptive": each})
    assert conditions(found.funded)["total-cost"] is met
    assert found.funded.passed is met
    assert found.policy("adaptive").costs.total == ("21" if met else "21.0003")


def test_a_free_baseline_leaves_no_saving_to_show() -> None:
    assert saves(Fraction(0), Fraction(0), 30) is False
    assert conditions(analysed({"adaptive": "0", "always-frontier": "0"}).funded)["total-cost"] is False


@pytest.mark.parametrize(("count", "least"), [(3, 3), (6, 5), (10, 7), (9, 7), (1, 1)])
def test_a_stratum_needs_seven_tenths_rounded_up(count: int, least: int) -> None:
    assert needed(70, count) == least
    assert frontier_validity({"a": least}, {"a": count}).strata["a"]
    assert not frontier_validity({"a": least - 1}, {"a": count}).strata["a"]


def test_a_frontier_that_fails_one_stratum_is_no_baseline() -> None:
    """Scenario s4 is a stratum of its own with three runs: two of three are less than 70 %; overall it is 29 of 30."""
    found = analysed(lost={"always-frontier": {(4, 1)}})
    assert conditions(found.frontier)["overall"] is True
    assert [name for name, passed in conditions(found.frontier).items() if not passed] == ["stratum refactor"]
    assert not found.frontier.passed
    assert conditions(found.funded) == {
        "absolute-completion": True,
        "valid-frontier": False,
        "relative-completion": None,
        "total-cost": None,
    }
    assert not found.funded.passed


def test_a_frontier_below_eighty_percent_overall_is_no_baseline() -> None:
    """One run lost in each stratum of six (four of those, 5 of 6 >= 70 %) and three more: 23 of 30."""
    lost = {(0, 1), (1, 1), (2, 1), (3, 1)}
    assert analysed(lost={"always-frontier": lost}).frontier.passed
    worse = lost | {(4, 1), (4, 2), (4, 3)}
    assert conditions(analysed(lost={"always-frontier": worse}).frontier)["overall"] is False


def test_prompt_only_is_no_part_of_the_funded_target() -> None:
    better = analysed({**CHEAP, "prompt-only": "0.01"}, lost={"adaptive": {(9, 1)}})
    assert better.policy("prompt-only").verified > better.policy("adaptive").verified
    assert better.funded.passed
    assert not better.historical.passed
    assert conditions(better.historical)["beats-prompt-only"] is False


@pytest.mark.parametrize(("each", "met"), [("0.8", True), ("0.80001", False)])
def test_the_held_out_median_must_be_a_fifth_lower(each: str, met: bool) -> None:
    found = analysed({"adaptive": each, "always-frontier": "1", "prompt-only": "2"})
    assert conditions(found.historical)["held-out-median-cost"] is met
    assert found.historical.passed is met


def test_the_median_is_of_held_out_runs_only_and_halves_the_middle_two() -> None:
    rows = [row for row in matrix(CHEAP) if (row.arm, row.visibility) != ("adaptive", "holdout")]
    costs = iter(["0.1"] * 5 + ["0.2", "0.5"] + ["9"] * 5)
    rows += [policy_run("adaptive", p, r, usd=next(costs)) for p in range(4) for r in (1, 2, 3)]
    held_out = analyse_optimizer_matrix(rows).policy("adaptive").held_out
    assert (held_out.runs, held_out.costs.median) == (12, "7/20")


def test_losing_one_held_out_completion_fails_the_historical_gate() -> None:
    found = analysed(lost={"adaptive": {(2, 3)}, "prompt-only": runs(9)})
    assert conditions(found.historical)["no-held-out-loss"] is False
    assert (found.held_out_lost, found.held_out_gained) == (("s2.r3",), ())
    assert found.funded.passed


@pytest.mark.parametrize(
    ("adaptive", "prompt", "cost", "other", "passed"),
    [
        (25, 24, Fraction(99), Fraction(1), True),
        (24, 24, Fraction(10), Fraction(11), True),
        (24, 24, Fraction(10), Fraction(10), False),
        (24, 24, None, Fraction(11), False),
        (0, 0, Fraction(10), Fraction(11), False),
        (23, 24, Fraction(1), Fraction(99), False),
    ],
)
def test_a_tie_with_prompt_only_is_won_by_a_lower_effective_cost(
    adaptive: int, prompt: int, cost: Fraction | None, other: Fraction, passed: bool
) -> None:
    assert against_prompt(adaptive, prompt, adaptive_cost=cost, prompt_cost=other).passed is passed


def test_one_unknown_cost_poisons_the_total_and_cannot_save() -> None:
    rows = matrix(CHEAP)
    rows[0] = policy_run("adaptive", 0, 1, attempts=[attempt(1, usd="0.1", verified=None), attempt(2, usd=None)])
    found = analyse_optimizer_matrix([*rows, *all_planted()])
    costs = found.policy("adaptive").costs
    assert (costs.total, costs.median, costs.per_verified, costs.all_known, costs.unknown) == (
        None,
        None,
        None,
        False,
        1,
    )
    assert (costs.known_total, costs.shown) == ("20.4", "at least USD 20.4000, the rest unknown")
    assert found.policy("adaptive").verified == 30
    assert conditions(found.funded)["total-cost"] is None
    assert conditions(found.historical)["held-out-median-cost"] is None
    assert conditions(found.historical)["known-costs"] is False
    assert not found.funded.passed and not found.historical.passed


def test_an_unknown_cost_outside_the_holdouts_leaves_the_held_out_median() -> None:
    rows = [
        row
        for row in matrix(CHEAP, {"prompt-only": runs(9)})
        if (row.arm, row.task, row.replicate) != ("adaptive", "s9", 3)
    ]
    rows.append(policy_run("adaptive", 9, 3, usd=None, success=False))
    found = analyse_optimizer_matrix([*rows, *all_planted()])
    assert conditions(found.historical)["held-out-median-cost"] is True
    assert found.historical.passed and not found.funded.passed


def test_failed_attempts_and_other_charges_count() -> None:
    rows = matrix()
    charge = Charge(id="tool-1", kind="tool", amount="0.5", currency="USD")
    tried = [attempt(1, usd="0.25", verified=False), attempt(2, usd="0.25")]
    rows[0] = policy_run("adaptive", 0, 1, attempts=tried, charges=(charge,))
    assert analyse_optimizer_matrix(rows).policy("adaptive").costs.total == "30"


@pytest.mark.parametrize(
    "proofs", [None, Proofs(observed_model=False, receipt=True), Proofs(observed_model=True, receipt=None)]
)
def test_a_success_counts_only_with_both_proofs(proofs: Proofs | None) -> None:
    rows = matrix(CHEAP)
    rows[0] = policy_run("adaptive", 0, 1, proofs=proofs)
    found = analyse_optimizer_matrix(rows)
    assert (found.policy("adaptive").verified, found.policy("adaptive").unproven) == (29, 1)
    assert any("1 run marked a success, and not counted" in text for text in found.limitations)


def test_zero_false_passes_stand_beside_their_bound() -> None:
    """0 of 120: the upper end is z² / (120 + z²) = 3.841459 / 123.841459."""
    found = analysed(lost={"prompt-only": runs(3)}).false_passes
    assert (found.cases, found.false_passes, found.low) == (120, 0, "0")
    assert found.high is not None and float(found.high) == pytest.approx(3.841459 / 123.841459, abs=1e-7)
    assert found.shown == "0 of 120 planted cases passed (95 % interval 0.0 % to 3.1 %)"


def test_one_false_pass_fails_the_gate_and_is_named() -> None:
    rows = [*matrix(CHEAP, {"prompt-only": runs(3)}), *all_planted()]
    rows[-1] = rows[-1].model_copy(
        update={"outcome": "success", "attempts": (attempt(usd="1"),), "scored_attempt": 1, "usd": "1"}
    )
    found = analyse_optimizer_matrix(rows, name="d.jsonl")
    assert (found.false_passes.false_passes, found.false_passes.lines) == (1, ("d.jsonl:240",))
    assert found.false_passes.by_kind["crash"] == (30, 1)
    assert conditions(found.historical)["zero-false-passes"] is False
    assert not found.historical.passed


def test_without_a_planted_case_of_every_kind_nothing_is_shown() -> None:
    found = analyse_optimizer_matrix([*matrix(CHEAP), *planted("tamper", 5)])
    assert conditions(found.historical)["zero-false-passes"] is None
    assert not found.historical.passed
    assert (found.false_passes.cases, found.step_reached) == (5, 2)
    empty = analyse_optimizer_matrix(matrix(CHEAP)).false_passes
    assert (empty.low, empty.high, empty.shown) == (None, None, "no planted case, so nothing is shown")


FROZEN = plan(selection=Selection(scenario="s2", record_digest="sha256:" + "1" * 64))


def test_the_ladder_ends_at_preliminary_evidence() -> None:
    rows = [*matrix(CHEAP, {"prompt-only": runs(3)}), *all_planted()]
    found = analyse_optimizer_matrix(rows, FROZEN, plan_digest=MANIFEST)
    assert (found.shape.runs, found.historical.passed, found.step_reached) == (120, True, 5)
    assert [step.shown for step in found.ladder] == [True, True, False, True, True, False, False]
    assert analyse_optimizer_matrix(rows, FROZEN, plan_digest=sha256_digest(b"another")).step_reached == 2
    assert analyse_optimizer_matrix(rows).step_reached == 2
    rehearsed = [row.model_copy(update={"kind": "rehearsal"}) for row in rows]
    found = analyse_optimizer_matrix(rehearsed)
    assert found.step_reached == 1
    assert found.conclusion.startswith("Rehearsal, not a measurement.")


def test_a_plan_names_the_policies_as_it_likes() -> None:
    roles = Roles(adaptive="always-small", frontier="always-frontier", prompt_only="prompt-only")
    found = analyse_optimizer_matrix(matrix(), plan(roles=roles))
    assert found.policy("always-small").role == "adaptive"
    assert found.policy("adaptive").role == "other"


def test_costs_of_different_bases_are_named() -> None:
    found = analyse_optimizer_matrix(matrix(), plan(billing_basis={"a": "list_price", "b": "vendor_reported"}))
    assert found.billing_basis == {"a": "list_price", "b": "vendor_reported"}
    assert "Costs of different bases are compared as they stand: list_price, vendor_reported." in found.limitations


def altered(index: int, **changes: object) -> list[LogicalRunRow]:
    rows = matrix()
    rows[index] = rows[index].model_copy(update=changes)
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (matrix()[1:], "d.jsonl: s0.adaptive.r1 is missing, so there is no report"),
        ([*matrix(), matrix()[7]], "d.jsonl:121: s2.adaptive.r2 appears twice, first on line 8"),
        ([*matrix(), policy_run("adaptive", 0, 4)], "d.jsonl:121: replicate: 4 exceeds the planned 3"),
        (altered(5, arm="intruder"), "d.jsonl:6: arm: 'intruder' is not a policy of the plan"),
        (altered(5, task="s99"), "d.jsonl:6: task: 's99' is not a scenario of the plan"),
        (altered(5, stratum="perf"), "d.jsonl:6: stratum: 'perf' is not what was frozen for the scenario"),
        (altered(5, cluster="elsewhere"), "d.jsonl:6: cluster: 'elsewhere' is not what was frozen"),
        (altered(5, visibility="public"), "d.jsonl:6: visibility: 'public' is not what was frozen"),
        (altered(5, outcome="missing"), "d.jsonl:6: outcome: the run is missing, so there is no report"),
        (altered(5, currency="EUR"), "d.jsonl:6: currency: differs from USD on line 1; currencies are not combined"),
        (altered(5, model="gpt-later"), "d.jsonl:6: model: 'gpt-later' differs"),
        (altered(5, round_id="round-2"), "d.jsonl:6: round_id: 'round-2' differs"),
        ([*matrix(), *planted("tamper", 2), *planted("tamper", 1)], "d.jsonl:123: s0.adaptive.r1 appears twice"),
    ],
)
def test_missing_duplicate_injected_and_mixed_runs_fail_construction(rows: list[LogicalRunRow], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        analyse_optimizer_matrix(rows, plan(), name="d.jsonl")
    assert message in str(refused.value)


def test_a_charge_counted_twice_is_refused() -> None:
    charge = (Charge(id="c", kind="tool", amount="1", currency="USD"),)
    rows = altered(3, charges=charge)
    rows[5] = rows[5].model_copy(update={"charges": charge})
    with pytest.raises(InvalidInput, match=r"d\.jsonl:6: charges: 'c' is counted twice, first on line 4"):
        analyse_optimizer_matrix(rows, plan(), name="d.jsonl")


def test_without_a_plan_the_three_policies_are_needed_by_name() -> None:
    rows = [row for row in matrix() if row.arm != "prompt-only"]
    with pytest.raises(InvalidInput, match="no run of the policy 'prompt-only'"):
        analyse_optimizer_matrix(rows)
    with pytest.raises(InvalidInput, match="is missing, so there is no report"):
        analyse_optimizer_matrix(matrix()[1:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": {"adaptive": "nobody"}}, "roles: 'nobody' is not among the policies"),
        ({"roles": {"adaptive": "prompt-only"}}, "roles: three different policies are needed"),
        (
            {"policies": ["adaptive", "adaptive", "always-frontier", "prompt-only"]},
            "policies: 'adaptive' is given twice",
        ),
        (
            {"selection": {"scenario": "s9", "record_digest": "sha256:" + "1" * 64}},
            "selection: 's9' is not a frozen holdout",
        ),
    ],
)
def test_a_nonsense_plan_is_refused(changes: dict[str, object], message: str) -> None:
    text = json.dumps({**plan().model_dump(mode="json"), **changes})
    with pytest.raises(ValueError, match=message):
        OptimizerPlan.model_validate_json(text)


def test_more_policies_than_anyone_compares_are_refused() -> None:
    rows = [*matrix(), *(policy_run(f"policy-{place}", 0, 1) for place in range(97))]
    with pytest.raises(InvalidInput, match="101 policies; at most 100 are compared"):
        analyse_optimizer_matrix(rows)


def test_the_result_is_the_same_in_any_order_and_holds_no_float() -> None:
    rows = [*matrix(CHEAP), *all_planted()]
    forwards = analyse_optimizer_matrix(rows)
    assert analyse_optimizer_matrix(rows[::-1]) == forwards
    assert type(forwards).model_validate_json(canonical(forwards)) == forwards
    assert "adaptive (adaptive): 30 of 30 verified" in describe(forwards)


def test_few_rows_that_predeclare_very_many_runs_are_refused_at_once() -> None:
    names = ("adaptive", "always-frontier", "prompt-only", *(f"p{place}" for place in range(90)))
    rows = [
        policy_run("adaptive", 9, 100).model_copy(update={"arm": name, "task": f"t{place}"})
        for place, name in enumerate(names)
    ]
    with pytest.raises(InvalidInput, match="864,807 of 864,900 predeclared runs have no row"):
        analyse_optimizer_matrix(rows)
