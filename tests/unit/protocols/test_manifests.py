"""Each protocol's manifest: parsed strictly, sound in itself, and in a measured round of the protocol's own sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from controller.domain.plan import RoundManifest
from controller.errors import NotCanonical
from controller.evidence.canonical import canonical, dumps
from controller.freeze.rules import manifest_of
from controller.protocols.cost_index.manifest import CostIndexManifest
from controller.protocols.manifests import MANIFESTS, parse_manifest
from controller.protocols.optimizer_matrix.manifest import OptimizerMatrixManifest
from controller.protocols.optimizer_matrix.plan import FROZEN_SHAPE
from controller.schedule import allocation
from tests.world.policy_matrix import POLICIES, scenario
from tests.world.recorded_round import ARMS, SEED, START, Protocol, digest, inputs

Fields = dict[str, Any]
Change = Callable[[Fields], object]
OTHER = "sha256:" + "0" * 64


def fields_of(protocol: Protocol) -> Fields:
    fields: Fields = json.loads(canonical(manifest_of(inputs(protocol=protocol), at=START)))
    return fields


def refusal(fields: Fields) -> str:
    with pytest.raises(NotCanonical) as caught:
        parse_manifest(dumps(fields), "manifest.json")
    return str(caught.value)


def _reschedule(fields: Fields) -> None:
    runs = allocation(
        [task["id"] for task in fields["tasks"]],
        [arm["id"] for arm in fields["arms"]],
        fields["replicates"],
        seed=SEED,
        round_id=fields["round_id"],
    )
    fields["schedule"] = [run.model_dump(mode="json") for run in runs]
    fields["launch_contracts"] = {arm["id"]: next(iter(fields["launch_contracts"].values())) for arm in fields["arms"]}


@pytest.mark.parametrize("protocol", ARMS)
def test_every_protocol_is_read_back_as_its_own_record(protocol: Protocol) -> None:
    manifest = manifest_of(inputs(protocol=protocol), at=START)
    again = parse_manifest(canonical(manifest), "manifest.json")
    assert again == manifest
    assert type(again) is MANIFESTS[protocol] is not RoundManifest


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda f: f.update(protocol="best-of-three"), "protocol: not one of harness-round"),
        (lambda f: f.update(protocol=None), "protocol: not one of"),
        (lambda f: f.update(protocol="cost-index"), "manifest.json: "),
        (lambda f: f.update(schema_version="fairtrial.manifest/1"), "schema_version"),
        (lambda f: f.update(colour="red"), "colour"),
        (lambda f: f.pop("rubric"), "rubric"),
        (lambda f: f.pop("software_digest"), "software_digest"),
        (lambda f: f["lane_policy"].update(fallback="on"), "lane_policy.fallback"),
        (lambda f: f["clean_start"].update(caches="shared"), "clean_start.caches"),
        (lambda f: f["retry"].update(attempts_max=4), "retry.attempts_max"),
        (lambda f: f["rubric"].update(gates=[]), "rubric.gates"),
        (lambda f: f["lane_policy"].update(upstreams={"acme": "x"}), "upstreams: must name the provider"),
        (lambda f: f["images"].pop("vm-verifier"), "'vm-verifier', the image of a machine"),
        (lambda f: f.update(retail_policy=None), "retail_policy_digest: a policy and its digest"),
        (lambda f: f["envelope"].update(logical_runs=7), "envelope: does not cover 8 logical runs"),
        (lambda f: f["launch_contracts"].pop("alpha"), "launch_contracts: must name every arm"),
        (
            lambda f: f.update(amends={"round_id": "small", "manifest_digest": OTHER, "why": "a task was flaky"}),
            "amends: an amendment is a round of its own",
        ),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused_by_field(change: Change, finding: str) -> None:
    fields = fields_of("harness-round")
    change(fields)
    assert finding in refusal(fields)


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b'{"a":1,"a":2}', b'{"protocol":["cost-index"]}', b"{" * 100])
def test_what_is_no_manifest_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(NotCanonical, match=r"manifest\.json"):
        parse_manifest(data, "manifest.json")


# cost-index


def index_fields(outcomes: int = 10, stacks: int = 6, **changes: Any) -> Fields:
    """A measured cohort: one task for each outcome, and stacks that differ by a setting."""
    fields = fields_of("cost-index")
    task, arm = fields["tasks"][0], fields["arms"][0]
    fields["tasks"] = [{**task, "id": f"t{i:02}", "stratum": f"o{i:02}"} for i in range(outcomes)]
    fields["arms"] = [{**arm, "id": f"s{i}", "settings": {"n": str(i)}} for i in range(stacks)]
    fields["sample_sizes"] = {f"o{i:02}": fields["replicates"] for i in range(outcomes)}
    fields["fixtures"] = {f"t{i:02}": OTHER for i in range(outcomes)}
    fields["envelope"] |= {"logical_runs": 1_000, "attempts": 1_000}
    _reschedule(fields)
    return fields | {"kind": "measured"} | changes


def test_a_measured_index_has_sixty_cells_and_its_plan_is_the_analysis_own() -> None:
    manifest = parse_manifest(dumps(index_fields()), "manifest.json")
    assert isinstance(manifest, CostIndexManifest)
    plan = manifest.plan
    assert len(plan.outcomes) * len(plan.stacks) == 60
    assert (plan.seed, plan.currency, plan.counted) == (SEED, "USD", ("model",))
    assert {instance.replicates for outcome in plan.outcomes for instance in outcome.instances} == {2}
    assert "compute charges: our own machines" in plan.exclusions


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        (index_fields(outcomes=9), "9 outcomes and 6 stacks, not 10 and 6"),
        (index_fields(stacks=5), "10 outcomes and 5 stacks"),
        (index_fields(approvers=[]), "approvers: a measured round"),
        (index_fields(uncertainty={"resamples": 9_999}), "uncertainty.resamples: fixed by the protocol"),
        (index_fields(uncertainty={"wilson_z": "1.96"}), "uncertainty.wilson_z"),
        (index_fields(sample_sizes={"o00": 1}), "sample_sizes: differ"),
        (index_fields(fixtures={}), "fixtures: must name every task"),
        (index_fields(boundary={"uncounted": {"tool": "free"}}), "boundary.uncounted: must say of every kind"),
        (
            index_fields(boundary={"counted": ["tool"], "uncounted": {}}),
            "boundary.uncounted: must say of every kind",
        ),
        (index_fields(methodology="2.0"), "methodology"),
    ],
)
def test_an_index_that_departs_from_its_protocol_is_refused(fields: Fields, finding: str) -> None:
    assert finding in refusal(fields)


@pytest.mark.parametrize(
    ("rule", "finding"),
    [
        ({"from_currency": "EUR", "rate": "1.1", "dated": "2030-01-01", "source": "a bank"}, "after the freeze"),
        ({"from_currency": "USD", "rate": "1.1", "dated": "2026-01-01", "source": "a bank"}, "no conversion"),
        ({"from_currency": "EUR", "rate": "0", "dated": "2026-01-01", "source": "a bank"}, "vanish"),
        ({"from_currency": "EUR", "rate": "1.1", "dated": "2026-01-01", "source": ""}, "source"),
    ],
)
def test_a_conversion_is_dated_sourced_and_older_than_the_freeze(rule: Fields, finding: str) -> None:
    fields = fields_of("cost-index")
    fields["boundary"]["conversions"] = [rule]
    assert finding in refusal(fields)


def test_two_stacks_that_are_the_same_are_no_two_stacks() -> None:
    fields = fields_of("cost-index")
    fields["arms"][1]["settings"] = fields["arms"][0]["settings"]
    assert "two stacks are the same" in refusal(fields)


# optimizer-matrix


def matrix_fields(change: Change = lambda fields: None) -> Fields:
    """A measured matrix of the frozen shape, with policies that choose as the protocol says."""
    fields = fields_of("optimizer-matrix")
    task, arm, candidate = fields["tasks"][0], fields["arms"][0], fields["candidates"][0]
    fields["tasks"] = [
        {
            **task,
            "id": one.id,
            "cluster": one.repository,
            "stratum": one.category,
            "visibility": "holdout" if one.holdout else "public",
        }
        for one in map(scenario, range(10))
    ]
    fields["strata"] = sorted({entry["stratum"] for entry in fields["tasks"]})
    fields["arms"] = [{**arm, "id": policy} for policy in POLICIES]
    fields["candidates"] = [
        {**candidate, "id": f"{harness}-{tier}", "harness": harness, "tier": tier}
        for harness in ("codex", "other")
        for tier in ("frontier", "middle", "small")
    ]
    routing = {"adaptive": "probe", "prompt-only": "prompt"}
    fields["policies"] = [{"arm": policy, "routing": routing.get(policy, "fixed")} for policy in POLICIES]
    archived = manifest_of(inputs(protocol="optimizer-matrix"), at=START)
    earlier = {"root": archived.corpus_root, "tasks": json.loads(canonical(archived))["tasks"]}
    fields |= {"kind": "measured", "replicates": 3, "calibration": earlier, "pilot": earlier}
    fields["selection"] = {"scenario": "s1", "record_digest": OTHER, "request_digest": digest("request")}
    fields["envelope"] |= {"logical_runs": 120, "attempts": 162, "timeout_minutes": 7_230}
    _reschedule(fields)
    change(fields)
    return fields


def test_a_measured_matrix_has_the_frozen_shape_and_its_plan_is_the_analysis_own() -> None:
    manifest = parse_manifest(dumps(matrix_fields()), "manifest.json")
    assert isinstance(manifest, OptimizerMatrixManifest)
    assert manifest.plan.shape == FROZEN_SHAPE
    assert len(manifest.schedule) == 120
    assert manifest.plan.selection is not None and manifest.plan.selection.scenario == "s1"
    assert manifest.plan.billing_basis["codex-small"] == "invented prices"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda f: f.update(replicates=2), "the frozen shape is"),
        (lambda f: f["tasks"].pop(), "the frozen shape is"),
        (lambda f: f["candidates"].pop(0) and f["candidates"].pop(2), "runtime families and 2 tiers"),
        (lambda f: f["policies"][0].update(routing="fixed"), "adaptive is the adaptive policy, whose routing"),
        (lambda f: f["policies"][3].update(routing="probe"), "prompt-only is the prompt_only policy"),
        (lambda f: f["policies"].pop(), "policies: must name every arm"),
        (lambda f: f.update(selection=None), "selection: the holdout is selected"),
        (lambda f: f["selection"].update(scenario="s9"), "'s9' is not a frozen holdout"),
        (lambda f: f.update(pilot={**f["pilot"], "root": OTHER}), "pilot.root: does not follow"),
        (lambda f: f["calibration"]["tasks"][0].update(id="s1"), "s1: a holdout may not be seen"),
        (lambda f: f["envelope"].update(attempts=163), "exceed the approved"),
        (lambda f: f["envelope"].update(timeout_minutes=7_231), "exceed the approved"),
        (lambda f: f["thresholds"].update(absolute_completion=70), "thresholds.absolute_completion"),
        (lambda f: f["probe"].update(model_calls_max=1), "probe.model_calls_max"),
        (lambda f: f["probe"].update(files_max=0), "probe.files_max"),
        (lambda f: f.update(strata=["bugfix"]), "strata: must be those"),
        (lambda f: f["candidates"][0].update(lane="nowhere"), "there is no lane 'nowhere'"),
        (lambda f: f["candidates"][0].update(billing_basis=""), "billing_basis"),
        (lambda f: f["roles"].update(frontier="nobody"), "roles: 'nobody'"),
        (lambda f: f.update(approvers=[]), "approvers: a measured round"),
    ],
)
def test_a_matrix_that_departs_from_its_protocol_is_refused(change: Change, finding: str) -> None:
    assert finding in refusal(matrix_fields(change))


def test_no_earlier_scenarios_are_no_measured_matrix() -> None:
    empty = json.loads(canonical(manifest_of(inputs(protocol="optimizer-matrix"), at=START)))["pilot"]
    assert empty["tasks"] == []
    found = refusal(matrix_fields(lambda fields: fields.update(pilot=empty)))
    assert "pilot.tasks: a measured round keeps the scenarios of its pilot" in found


def test_an_arm_that_is_no_candidate_is_refused() -> None:
    fields = fields_of("optimizer-matrix")
    fields["arms"][0]["harness"] = "other"
    assert "none is other on lane, which the policy adaptive uses" in refusal(fields)
