"""Planning figures against those of the specification's section on power, which were found without this code."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from controller.analyse import power
from controller.analyse.pilot import pilot_assumptions
from controller.analyse.planned import planned
from controller.analyse.planning import (
    GateAssumptions,
    GatePlanning,
    IndexAssumptions,
    IndexPlanning,
    RoundAssumptions,
    RoundPlanning,
    assumptions_of,
)
from controller.cli.__main__ import main
from controller.errors import InvalidInput
from tests.unit.analyse.test_rules import grid
from tests.world.rounds import attempt, jsonl, realistic, run

TWELVE_ARMS = Fraction(1, 20) / 66
SATURATED, WIDE, MODERATE = 0.17, 0.27, 0.37


@pytest.mark.parametrize(
    ("tasks", "spread", "unadjusted", "first_step"),
    [
        (50, SATURATED, "6.7", "10.1"),
        (50, WIDE, "10.7", "16.1"),
        (50, MODERATE, "14.7", "22.0"),
        (100, SATURATED, "4.8", "7.2"),
        (100, WIDE, "7.6", "11.4"),
        (100, MODERATE, "10.4", "15.6"),
        (400, SATURATED, "2.4", "3.6"),
        (400, WIDE, "3.8", "5.7"),
        (400, MODERATE, "5.2", "7.8"),
    ],
)
def test_detectable_differences(tasks: int, spread: float, unadjusted: str, first_step: str) -> None:
    assert f"{100 * power.detectable(spread, tasks):.1f}" == unadjusted
    assert f"{100 * power.detectable(spread, tasks, TWELVE_ARMS):.1f}" == first_step


@pytest.mark.parametrize(
    ("spread", "unadjusted", "first_step"), [(SATURATED, 253, 569), (WIDE, 636, 1436), (MODERATE, 1194, 2696)]
)
def test_tasks_that_the_margin_needs(spread: float, unadjusted: int, first_step: int) -> None:
    assert power.tasks_for_shift(spread, 0.03) == unadjusted
    assert power.tasks_for_shift(spread, 0.03, TWELVE_ARMS) == first_step


@pytest.mark.parametrize(("percent", "unadjusted", "first_step"), [(10, 810, 1828), (20, 181, 408), (30, 71, 160)])
def test_tasks_that_a_saving_needs(percent: int, unadjusted: int, first_step: int) -> None:
    assert power.tasks_for_saving(1.07, Fraction(percent, 100)) == unadjusted
    assert power.tasks_for_saving(1.07, Fraction(percent, 100), TWELVE_ARMS) == first_step


@pytest.mark.parametrize(
    ("spread", "lead", "lead_holm"), [(SATURATED, 0.3, 2.7), (WIDE, 2.3, 6.1), (MODERATE, 4.3, 9.5)]
)
def test_the_lead_that_puts_the_bound_above_the_margin(spread: float, lead: float, lead_holm: float) -> None:
    assert round(100 * power.lead_needed(spread, 100, 0.03), 1) == lead
    assert round(100 * power.lead_needed(spread, 100, 0.03, TWELVE_ARMS), 1) == lead_holm


def test_a_bounded_cost_ratio_needs_tasks_with_a_success() -> None:
    """Three of ten leave 2.8 % of resamples without a success, four 0.6 %; 8 of 100 leave 2.4 replicates of 10,000."""
    assert power.successful_tasks_min(10, 10_000) == 4
    assert power.successful_tasks_min(100, 10_000) == 4
    assert power.successful_tasks_min(100, 10_000, TWELVE_ARMS) == 9
    assert power.successful_tasks_min(100, 10_000, Fraction(1, 20) / 251) is None  # k is 0


def test_equal_arms_of_equally_hard_tasks_have_the_binomial_spread() -> None:
    assert power.spread_of_rate(0.5, 1) == pytest.approx(0.5**0.5)
    assert power.spread_of_rate(0.64, 3) == pytest.approx(0.3919, abs=1e-4)


def test_no_number_of_tasks_shows_a_saving_of_nothing() -> None:
    assert power.tasks_for_saving(1.0, Fraction(0)) is None
    assert power.tasks_for_shift(0.3, 0.0) is None


def answered(**fields: object) -> RoundPlanning:
    found = planned(assumptions_of(fields, name="plan.yaml"))
    assert isinstance(found, RoundPlanning)
    return found


def test_a_round_without_assumptions_shows_three_usual_spreads() -> None:
    found = answered(tasks=100, arms=12)
    assert (found.comparisons, found.logical_runs, found.first_step_k) == (66, 3_600, 3)
    assert [row.detectable_points for row in found.sensitivities] == ["4.8", "7.2", "7.6", "11.4", "10.4", "15.6"]
    assert [row.tasks_for_margin for row in found.sensitivities] == [253, 569, 636, 1436, 1194, 2696]
    assert [saving.tasks_needed for saving in found.savings] == [810, 1828, 181, 408, 71, 160]
    assert any("time rule is not planned" in note for note in found.notes)


def test_one_pair_has_one_level() -> None:
    assert {row.level for row in answered(tasks=100).sensitivities} == {"unadjusted"}


def test_few_tasks_and_large_families_are_warned_of() -> None:
    assert "Fewer than 50 tasks" in answered(tasks=40).notes[0]
    assert "Fewer than 100 tasks for 66 comparisons" in answered(tasks=60, arms=12).notes[0]
    assert any("reject nothing" in note for note in answered(tasks=100, arms=23).notes)  # 253 pairs: k is 0
    assert any("almost never fire" in note for note in answered(tasks=50, arms=3, difference_sd=0.37).notes)


def test_the_gates_of_optimizer_matrix() -> None:
    """A true 80 % passes 24 of 30 with 60.7 %, 70 % with 16 %, 90 % with 97.4 %."""
    found = planned(GateAssumptions(protocol="optimizer-matrix"))
    assert isinstance(found, GatePlanning)
    assert [gate.passes_80_percent for gate in found.gates] == ["0.1595", "0.6070", "0.9742"]
    assert found.false_pass_upper_if_none == "0.0310"
    assert found.false_pass_upper_if_none_of_one_policy == "0.1135"
    for rate, expected in ((Fraction(4, 5), 0.69), (Fraction(19, 20), 0.82)):
        assert round(float(power.gate_chances(rate, 30).relative_to_equal), 2) == expected


def test_few_successes_leave_a_cost_index_without_an_upper_end() -> None:
    """Of ten instances, up to three successes do: P(at most 3 of 10 at one half) = 176/1024."""
    found = planned(assumptions_of({"protocol": "cost-index", "instances": 10, "success_rate": 0.5}, name="plan"))
    assert isinstance(found, IndexPlanning)
    assert found.cost_per_success[0].upper_end_unbounded == "0.1719"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "plan.yaml: tasks: Field required"),
        ({"tasks": 1}, "plan.yaml: tasks: .*greater than or equal to 2"),
        ({"tasks": True}, "plan.yaml: tasks"),
        ({"tasks": 50, "arms": 1}, "plan.yaml: arms"),
        ({"tasks": 50, "difference_sd": [0.2, -1]}, r"plan.yaml: difference_sd\[1\]"),
        ({"tasks": 50, "difference_sd": float("nan")}, r"plan.yaml: difference_sd\[0\]: .*finite"),
        ({"tasks": 50, "success_rate": 1.5}, "plan.yaml: success_rate"),
        ({"tasks": 50, "cost_log_sd": "much"}, "plan.yaml: cost_log_sd"),
        ({"tasks": 50, "cost_log_sd": float("inf")}, "plan.yaml: cost_log_sd: .*finite"),
        ({"tasks": 50, "lead_points": {}}, "plan.yaml: lead_points"),
        ({"tasks": 50, "taks": 3}, "plan.yaml: taks: Extra inputs"),
        ({"tasks": 5_001}, "plan.yaml: tasks: .*less than or equal to 5000"),
        ({"tasks": 10**400}, "plan.yaml: tasks"),
        ({"tasks": 50, "arms": 101}, "plan.yaml: arms: .*less than or equal to 100"),
        ({"tasks": 50, "success_rate": "1e-7"}, "plan.yaml: success_rate: .*no more than 6 decimal places"),
        ({"tasks": 50, "success_rate": "0." + "9" * 30}, "plan.yaml: success_rate: .*6 decimal places"),
        ({"tasks": 50, "difference_sd": "1e-400"}, r"plan.yaml: difference_sd\[0\]: .*6 decimal places"),
        ({"tasks": 50, "difference_sd": "1e-999999999"}, r"plan.yaml: difference_sd\[0\]: "),
        ({"tasks": 50, "cost_log_sd": "1e999999999"}, "plan.yaml: cost_log_sd: .*less than or equal to 10"),
        ({"tasks": 50, "time_log_sd": "-0"}, "plan.yaml: time_log_sd: .*greater than 0"),
        ({"tasks": 50, "lead_points": "-100.0000001"}, "plan.yaml: lead_points"),
        ({"tasks": 50, "savings_percent": [10] * 21}, "plan.yaml: savings_percent: .*at most 20"),
        ({"protocol": "best-of-n"}, "plan.yaml: protocol: must be one of"),
        ({"protocol": ["harness-round"]}, "plan.yaml: protocol: must be one of"),
        ({"protocol": "cost-index"}, "plan.yaml: instances: Field required"),
        ({"tasks": {1: object()}}, "plan.yaml: not a plain mapping"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        assumptions_of(fields, name="plan.yaml")


def test_a_pilot_measures_what_would_be_assumed() -> None:
    """Differences of (1, -1, 1, -1)/3 have a spread of 0.3849; equal costs pull on the ratio by success alone."""
    rows = grid({"a": [3, 1, 3, 1], "b": [2, 2, 2, 2]})
    found, measured = pilot_assumptions(rows, name="pilot.jsonl")
    assert (found.tasks, found.pairs, found.rehearsal) == (4, 1, True)
    assert (measured["difference_sd"], measured["repeats"]) == (["0.3849"], 3)
    assert measured["cost_log_sd"] == "0.5774"  # pulls of -(1/2, -1/2, 1/2, -1/2): the root of 1/3
    assert RoundAssumptions.model_validate_json(json.dumps({"tasks": 50, **measured})).difference_sd


def test_a_pilot_that_shows_no_difference_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no two arms have known outcomes"):
        pilot_assumptions(grid({"a": [3, 3], "b": [3, 3]}), name="pilot.jsonl")


def test_unknown_costs_leave_the_usual_spread_of_costs() -> None:
    rows = [
        run(row.task, row.arm, row.replicate, success=False, attempts=[attempt(usd=None, verified=False)])
        if row.outcome == "failure"
        else row
        for row in grid({"a": [3, 1, 3, 1], "b": [2, 2, 2, 2]})
    ]
    found, measured = pilot_assumptions(rows, name="pilot.jsonl")
    answer = planned(assumptions_of({"tasks": 60, **measured}, name="plan"), found)
    assert "cost_log_sd" not in measured
    assert any("1.07 is assumed" in note for note in answer.notes)


def screen(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["analyse", *arguments])
    return code, *capsys.readouterr()


def test_a_plan_comes_from_a_file_or_from_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("tasks: 100\narms: 12\ndifference_sd: 0.27\n")
    from_file = screen(capsys, "--plan", str(plan), "--json")
    given = screen(capsys, "--plan", "--tasks", "100", "--arms", "12", "--difference-sd", "0.27", "--json")
    assert from_file == given
    assert json.loads(given[1])["sensitivities"][0]["detectable_points"] == "7.6"
    code, text, _ = screen(capsys, "--plan", str(plan))
    assert code == 0
    assert "saturated" not in text
    assert "sd 0.27" in text


def test_a_pilot_takes_the_place_of_assumptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = tmp_path / "pilot.jsonl"
    pilot.write_bytes(jsonl(realistic([f"t{task}" for task in range(20)], ["a", "b"])))
    code, out, _ = screen(capsys, "--plan", "--tasks", "100", "--pilot", str(pilot), "--json")
    found = json.loads(out)
    assert (code, found["pilot"]["pairs"], len(found["assumptions"]["difference_sd"])) == (0, 1, 1)
    assert {row["criterion"] for row in found["tie_breaks"]} == {"cost", "time"}
    assert any("rehearsal" in note for note in found["notes"])
    for options in (["--difference-sd", "0.2"], ["--success-rate", "0.5"]):
        code, _, err = screen(capsys, "--plan", "--tasks", "100", "--pilot", str(pilot), *options)
        assert (code, "comes from the pilot; give one of the two" in err) == (72, True)
    code, _, err = screen(capsys, "--plan", "--tasks", "100", "--pilot", str(pilot), "--repeats", "2")
    assert (code, "repeats: is 2, but the pilot has 3" in err) == (72, True)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("tasks: 50\ntasks: 60\n", [], "key 'tasks' appears twice"),
        ("tasks: 50\n", ["--tasks", "50"], "plan.yaml: tasks: is given in the file and as an option"),
        ("- tasks\n", [], "must be a mapping"),
        ("tasks: [\n", [], "plan.yaml: "),
        ("tasks: .nan\n", [], "plan.yaml: tasks"),
    ],
)
def test_a_plan_that_cannot_be_read_is_named(
    text: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    code, out, err = screen(capsys, "--plan", str(plan), *options)
    assert (code, out) == (72, "")
    assert message in err


def test_planning_options_without_plan_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = screen(capsys, "--tasks", "50")
    assert (code, "tasks: only with --plan" in err) == (72, True)
    code, _, err = screen(capsys)
    assert (code, "needs a round's directory or a dataset" in err) == (72, True)


def test_every_field_of_a_plan_is_documented() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "methodology.md").read_text()
    kinds = (RoundAssumptions, GateAssumptions, IndexAssumptions)
    fields = {field for kind in kinds for field in kind.model_fields}
    assert [field for field in sorted(fields) if f"`{field}" not in guide] == []
