"""A receipt proves the walls or names what is missing; the end is judged from outside the harness."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.outcome import EndKind, HarnessExit
from controller.domain.receipt import Collected, IsolationReceipt, RunOrder
from controller.domain.usage import AttemptAccount
from controller.ports.pool import Isolation
from controller.run import artifact_sizes, judge_end, receipt_mismatches
from controller.run.probes import PROBES, ordered_probes
from controller.run.rules import expected_walls, order_json, shim_fault

LIMITS = SandboxLimits()
FINE: dict[str, Any] = {"exit_code": 0, "timed_out": False, "wall_ms": 10, "log_truncated": False}


def receipt(*, found: dict[str, Any] | None = None, outcome: str = "refused", **changes: Any) -> IsolationReceipt:
    probes = [{"name": p.name, "kind": p.kind, "outcome": outcome, "detail": "ENETUNREACH"} for p in PROBES]
    fields = {
        "schema_version": "fairtrial.receipt/1",
        "attempt_id": "att-1",
        "found": {**expected_walls(LIMITS), **(found or {})},
        "unenforced": [],
        "probes": probes,
        "mismatches": [],
        "phases_ms": {},
        **changes,
    }
    return IsolationReceipt.model_validate_json(json.dumps(fields))


def collected(**exit_fields: Any) -> Collected:
    ended = HarnessExit.model_validate({**FINE, "tree_truncated": False, **exit_fields}) if exit_fields else None
    return Collected(
        receipt=receipt(),
        receipt_digest=None,
        exit=ended,
        relay_exit=None,
        tree=None,
        log=b"",
        reports={},
        missing=(),
    )


def account(*statuses: int | None, refusals: tuple[tuple[str, bool], ...] = ()) -> AttemptAccount:
    request = {
        "attempt_id": "att-1",
        "logical_run_id": "t.a.r1",
        "dialect": "anthropic",
        "model": "m",
        "state": "settled",
        "accepted_at": 1,
        "ended_at": 2,
        "body_digest": "sha256:" + "0" * 64,
        "provider_message_id": None,
        "observed_model": None,
        "usage": None,
        "usd": None,
        "zero_bill_proof": None,
        "note": "",
    }
    rows = [
        {**request, "request_id": f"r{n}", "sequence": n, "status": status}
        for n, status in enumerate(statuses, start=1)
    ]
    refused = [
        {"attempt_id": "att-1", "at": 1, "reason": reason, "status": 400, "limit": limit} for reason, limit in refusals
    ]
    fields = {"attempt_id": "att-1", "requests": rows, "refusals": refused, "open": False}
    return AttemptAccount.model_validate_json(json.dumps(fields))


def test_a_receipt_with_every_wall_and_every_probe_refused_has_no_mismatch() -> None:
    assert receipt_mismatches(receipt(), LIMITS) == ()


def test_more_than_twenty_ways_out_are_tried_and_each_has_its_own_name() -> None:
    names = [probe.name for probe in PROBES]
    assert len(names) == len(set(names)) >= 30
    assert {probe.kind for probe in PROBES} == {
        "tcp", "udp", "icmp", "name", "raw", "packet", "vsock", "route", "userns",
    }  # fmt: skip


def test_names_of_the_order_are_tried_besides_the_fixed_ones() -> None:
    extra = ordered_probes(("example.com", "packages.invalid"))[len(PROBES) :]
    assert [(probe.name, probe.kind) for probe in extra] == [("name-packages.invalid", "name")]


@pytest.mark.parametrize("name", sorted(expected_walls(LIMITS)))
@pytest.mark.parametrize("value", [None, "other", -1])
def test_every_wall_that_is_not_as_ordered_is_named(name: str, value: Any) -> None:
    (fault,) = receipt_mismatches(receipt(found={name: value}), LIMITS)
    assert fault.startswith(f"{name}: expected ")


def test_a_smaller_disk_is_accepted_and_a_larger_one_is_not() -> None:
    assert receipt_mismatches(receipt(found={"disk_bytes": 2**30}), LIMITS) == ()
    assert len(receipt_mismatches(receipt(found={"disk_bytes": LIMITS.disk_bytes + 1}), LIMITS)) == 1


@pytest.mark.parametrize("outcome", ["reached", "silent"])
def test_a_probe_that_is_not_refused_is_a_hole(outcome: str) -> None:
    faults = receipt_mismatches(receipt(outcome=outcome), LIMITS)
    assert len(faults) == len(PROBES)
    assert all(outcome in fault for fault in faults)


def test_a_probe_that_was_not_tried_is_a_hole() -> None:
    assert receipt_mismatches(receipt(probes=[]), LIMITS)[0] == f"probe {PROBES[0].name}: not tried"
    ordered = receipt_mismatches(receipt(), LIMITS, probe_names=("registry.example",))
    assert ordered == ("probe name-registry.example: not tried",)


def test_a_missing_receipt_and_the_shims_own_complaint_void_the_attempt() -> None:
    assert receipt_mismatches(None, LIMITS) == ("receipt.json: there is no readable isolation receipt",)
    assert receipt_mismatches(receipt(mismatches=["odd"]), LIMITS) == ("odd",)


def test_an_unenforced_limit_is_excused_for_containers_only() -> None:
    loose = receipt(found={"disk_bytes": 2**60}, unenforced=["disk_bytes"])
    assert receipt_mismatches(loose, LIMITS, isolation=Isolation.CONTAINER) == ()
    assert receipt_mismatches(loose, LIMITS)[0] == "disk_bytes: this machine does not enforce it"


@pytest.mark.parametrize(
    ("fields", "seen", "kind"),
    [
        ({"exit_code": 0}, account(200), EndKind.NORMAL),
        ({"exit_code": 0}, account(529), EndKind.NORMAL),
        ({"exit_code": 3}, account(200), EndKind.HARNESS_CRASH),
        ({"exit_code": 3}, account(), EndKind.HARNESS_CRASH),
        ({"exit_code": 3}, account(500, 200), EndKind.HARNESS_CRASH),
        ({"exit_code": 3}, account(200, 429), EndKind.PROVIDER_ERROR),
        ({"exit_code": 3}, account(200, 529), EndKind.PROVIDER_ERROR),
        ({"exit_code": 3}, account(200, None), EndKind.HARNESS_CRASH),
        ({"exit_code": None, "timed_out": True}, account(529), EndKind.TIMEOUT),
        ({}, account(200), EndKind.HARNESS_CRASH),
        ({"exit_code": 0}, account(200, refusals=(("61st request", True),)), EndKind.HARD_LIMIT),
        ({"exit_code": 0}, account(200, refusals=(("unknown model", False),)), EndKind.NORMAL),
    ],
)
def test_how_an_attempt_ended(fields: dict[str, Any], seen: AttemptAccount, kind: EndKind) -> None:
    assert judge_end(collected(**fields), (), seen, SpendLimits())[0] is kind


@pytest.mark.parametrize(("usd", "kind"), [("1.00", EndKind.NORMAL), ("1.0000000001", EndKind.HARD_LIMIT)])
def test_a_crossed_ceiling_is_a_hard_limit_even_when_nothing_was_refused(usd: str, kind: EndKind) -> None:
    seen = account(200, 200)
    rows = tuple(row.model_copy(update={"usd": usd if row.sequence == 1 else "0"}) for row in seen.requests)
    spent = AttemptAccount(attempt_id=seen.attempt_id, requests=rows, refusals=(), open=False)
    assert judge_end(collected(exit_code=0), (), spent, SpendLimits())[0] is kind
    assert judge_end(collected(exit_code=0), (), spent, SpendLimits(usd_per_attempt="2"))[0] is EndKind.NORMAL


def test_a_mismatch_outweighs_everything() -> None:
    seen = account(refusals=(("limit", True),))
    end = judge_end(collected(exit_code=0), ("routes: expected 0, found 1",), seen, SpendLimits())
    assert end == (EndKind.INFRASTRUCTURE, "routes: expected 0, found 1")


def test_the_shims_faults_are_the_sandboxs_and_its_verdicts_are_not() -> None:
    assert [code for code in (0, 96, 97, 98, 99, 137, None) if shim_fault(code)] == [96, 98, 99, None]


def test_the_order_tells_the_shim_every_limit() -> None:
    order = RunOrder(
        attempt_id="att-1",
        image="harness-x",
        workspace_tar=b"",
        contract=LaunchContract(argv=("x",), env={}, files={}),
        limits=LIMITS,
        artifact_limits=ArtifactLimits(),
        upload_token="up_x",
        canary="canary_x",
    )
    fields = json.loads(json.dumps(order_json(order)))
    assert fields["contract"]["env"] == {"FAIRTRIAL_CANARY": "canary_x"}
    assert fields["contract"]["files"][".fairtrial-canary"].splitlines()[-1] == "canary_x"
    assert order.contract.env == {}, "the published contract holds no canary"
    assert fields["expected"]["cpu_max"] == "300000 100000"
    assert fields["expected"]["memory_max"] == str(6 * 2**30)
    assert (fields["expected"]["pids_max"], fields["agent_seconds"]) == ("1024", 1800)
    assert list(artifact_sizes(ArtifactLimits()))[-1] == "exit.json"
