"""Plans of cost-index and optimizer-matrix: their sections, and what the engine refuses instead of pretending."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.adapters.files_durable import LocalFiles
from controller.cli.__main__ import main
from controller.domain.authorization import Caps
from controller.errors import InvalidInput, InvalidPlan, RoundNotFound
from controller.freeze import FreezeInputs, freeze
from controller.freeze.plan import parse_plan
from controller.freeze.rules import manifest_of
from controller.protocols.cost_index.manifest import CostIndexManifest
from controller.protocols.optimizer_matrix.candidate import DrawnHoldout
from controller.wiring.freezing import amendment_of
from tests.world.clock import StepClock
from tests.world.recorded_round import COST_INDEX, OPTIMIZER, START, conducted, digest, inputs
from tests.world.sealed import sealed_task
from tests.world.signer import FixedSigner

ROUNDS = Path(__file__).parents[3] / "policies" / "rounds"
WHY = "task first is flaky under beta, so it was removed"


def _plan(name: str, **changes: Any) -> bytes:
    """A demo's plan with some fields exchanged, or left out where the value is None."""
    fields = yaml.safe_load((ROUNDS / name).read_text()) | changes
    return json.dumps({key: value for key, value in fields.items() if value is not None}).encode()


def _refusal(data: bytes) -> str:
    with pytest.raises(InvalidPlan) as caught:
        parse_plan(data, "PLAN.yaml")
    return str(caught.value)


@pytest.mark.parametrize("name", ["demo.yaml", "demo-cost-index.yaml", "demo-optimizer-matrix.yaml"])
def test_the_plans_of_the_project_are_valid(name: str) -> None:
    assert parse_plan((ROUNDS / name).read_bytes(), name).kind == "rehearsal"


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        (_plan("demo.yaml", protocol="best-of-three"), "protocol: "),
        (_plan("demo-cost-index.yaml", cost_index=None), "cost_index: a plan of cost-index has this section"),
        (_plan("demo.yaml", protocol="cost-index"), "cost_index: a plan of cost-index has this section"),
        (_plan("demo-optimizer-matrix.yaml", protocol="harness-round"), "optimizer_matrix: a plan of optimizer-matrix"),
        (_plan("demo-cost-index.yaml", comparisons="all-pairs"), "comparisons: cost-index compares no pairs"),
        (_plan("demo-optimizer-matrix.yaml", kind="measured"), "replicates: a measured round has exactly 3"),
        (_plan("demo-cost-index.yaml", kind="measured"), "approvers: a measured round names"),
        (_plan("demo.yaml", retail_policy="/etc/retail.json"), "retail_policy: '/etc/retail.json' must be relative"),
        (_plan("demo.yaml", approvers="/etc/keys.json"), "approvers: '/etc/keys.json' must be relative"),
        (_plan("demo.yaml", exclusions=[""]), "exclusions[0]: "),
        (_plan("demo.yaml", envelope={"usd": "1"}), "envelope.attempts: "),
        (_plan("demo-cost-index.yaml", cost_index={"boundary": {}}), "cost_index.boundary.uncounted"),
        (_plan("demo-cost-index.yaml", cost_index=[]), "cost_index: "),
    ],
)
def test_each_fault_of_a_section_is_named(data: bytes, finding: str) -> None:
    assert finding in _refusal(data)


def test_paths_of_earlier_scenarios_are_relative_too() -> None:
    section = yaml.safe_load((ROUNDS / "demo-optimizer-matrix.yaml").read_text())["optimizer_matrix"]
    data = _plan("demo-optimizer-matrix.yaml", optimizer_matrix=section | {"pilot": ["../x", "/y"]})
    assert "optimizer_matrix.pilot[1]: '/y' must be relative" in _refusal(data)


def _frozen_refusal(given: FreezeInputs) -> str:
    with pytest.raises(InvalidPlan) as caught:
        manifest_of(given, at=START)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["tool", "compute", "human_verification", "allocated_shared"])
def test_a_charge_that_the_engine_can_not_settle_is_not_counted(kind: str) -> None:
    given = inputs(protocol="cost-index")
    uncounted = {name: why for name, why in COST_INDEX.boundary.uncounted.items() if name != kind}
    boundary = COST_INDEX.boundary.model_copy(update={"counted": ("model", kind), "uncounted": uncounted})
    section = COST_INDEX.model_copy(update={"boundary": boundary})
    plan = given.plan.model_copy(update={"cost_index": section})
    found = _frozen_refusal(given.model_copy(update={"plan": plan}))
    assert f"cost_index.boundary.counted: {kind} charges of a round are not settled by this engine" in found


def test_another_currency_needs_a_rule_that_converts_what_is_metered() -> None:
    given = inputs(protocol="cost-index")
    boundary = COST_INDEX.boundary.model_copy(update={"currency": "EUR"})
    plan = given.plan.model_copy(update={"cost_index": COST_INDEX.model_copy(update={"boundary": boundary})})
    assert "charges are metered in USD" in _frozen_refusal(given.model_copy(update={"plan": plan}))


@pytest.mark.parametrize("routing", ["prompt", "probe"])
def test_a_policy_that_chooses_its_lane_is_refused(routing: str) -> None:
    given = inputs(protocol="optimizer-matrix")
    section = OPTIMIZER.model_copy(update={"routing": OPTIMIZER.routing | {"adaptive": routing}})
    plan = given.plan.model_copy(update={"optimizer_matrix": section})
    found = _frozen_refusal(given.model_copy(update={"plan": plan}))
    assert f"optimizer_matrix.routing.adaptive: {routing!r} chooses among several lanes" in found


def test_a_selected_holdout_and_earlier_scenarios_reach_the_manifest() -> None:
    given = inputs(protocol="optimizer-matrix")
    tasks = (given.tasks[0].model_copy(update={"visibility": "holdout"}), given.tasks[1])
    chosen = DrawnHoldout(scenario="first", record_digest=digest("record"), request_digest=digest("request"))
    plan = given.plan.model_copy(update={"optimizer_matrix": OPTIMIZER.model_copy(update={"selection": chosen})})
    earlier = (given.tasks[1],)
    manifest = manifest_of(given.model_copy(update={"plan": plan, "tasks": tasks, "calibration": earlier}), at=START)
    fields = manifest.model_dump()
    assert fields["selection"]["request_digest"] == digest("request")
    assert [task["id"] for task in fields["calibration"]["tasks"]] == ["second"]
    assert fields["calibration"]["root"] != fields["corpus_root"]


def test_an_index_may_hold_sealed_tasks_whose_fixtures_stay_in_their_commitment() -> None:
    hidden = sealed_task()[0].entry
    given = inputs(protocol="cost-index", given=(inputs().tasks[0], hidden))
    manifest = manifest_of(given, at=START)
    assert isinstance(manifest, CostIndexManifest)
    assert set(manifest.fixtures) == {"first"}
    told = given.model_copy(update={"fixtures": given.fixtures | {hidden.id: digest("cases")}})
    assert "fixtures: must name every task but the sealed ones" in _frozen_refusal(told)


def test_the_envelope_is_the_plans_or_all_that_the_retry_rule_allows() -> None:
    given = inputs()
    narrow = Caps(logical_runs=8, attempts=9, requests=10, usd="1.5", timeout_minutes=60)
    for envelope, expected in ((narrow, narrow), (None, Caps(**CAPS_OF_EIGHT_RUNS))):
        plan = given.plan.model_copy(update={"envelope": envelope})
        assert manifest_of(given.model_copy(update={"plan": plan}), at=START).envelope == expected


CAPS_OF_EIGHT_RUNS: dict[str, Any] = {  # 3 attempts each, of 60 requests, 1 USD and 30 minutes
    "logical_runs": 8,
    "attempts": 24,
    "requests": 1_440,
    "usd": "24",
    "timeout_minutes": 720,
}


def test_an_amendment_is_another_round_that_names_the_old_one(tmp_path: Path) -> None:
    found = conducted(tmp_path / "old")  # it was started, run and closed
    before = LocalFiles().read_directory(found.directory, bytes_max=2**24)
    amendment = amendment_of(found.directory, f"  {WHY} ")
    assert (amendment.round_id, amendment.manifest_digest, amendment.why) == ("small", found.manifest_digest, WHY)
    given = inputs()
    again = given.model_copy(update={"amends": amendment})
    with pytest.raises(InvalidPlan, match="amends: an amendment is a round of its own"):
        manifest_of(again, at=START)
    plan = given.plan.model_copy(update={"round_id": "small-2"})
    renamed = again.model_copy(update={"plan": plan})
    with pytest.raises(InvalidInput, match="never overwritten"):
        freeze(renamed, found.directory, FixedSigner(), StepClock(START), files=LocalFiles())
    frozen = freeze(renamed, tmp_path / "new", FixedSigner(), StepClock(START), files=LocalFiles())
    assert frozen.manifest.amends == amendment
    assert frozen.digest != found.manifest_digest
    assert LocalFiles().read_directory(found.directory, bytes_max=2**24) == before


@pytest.mark.parametrize("why", ["", "   ", "flaky", "a" * 9 + " "])
def test_an_amendment_says_why(why: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="why"):
        amendment_of(tmp_path, why)


def test_only_a_frozen_round_can_be_amended(tmp_path: Path) -> None:
    with pytest.raises(RoundNotFound):
        amendment_of(tmp_path, WHY)


@pytest.mark.parametrize("given", [["--amends", "rounds/one"], ["--why", WHY]])
def test_the_round_and_the_reason_come_together(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["freeze", str(ROUNDS / "demo.yaml"), "--out", str(tmp_path / "new"), *given])
    assert code == InvalidInput.exit_code
    assert "an amendment names the round that it amends and says why" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
