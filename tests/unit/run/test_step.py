"""What is pushed into a machine, and what is read back from the store as if an enemy had written it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from controller.domain.ids import AttemptId
from controller.domain.instant import InstantMs
from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits
from controller.domain.receipt import RunOrder
from controller.ports.ledger import UploadGrant
from controller.run import artifact_sizes, collect
from controller.run.step import SHIM_ARGV, container_spec, order_archive, shim_archive
from tests.unit.run.test_rules import receipt
from tests.world.artifacts import MemoryArtifacts
from tests.world.clock import StepClock

ATTEMPT = AttemptId("att-1")
LIMITS = ArtifactLimits()
EXIT = {
    "schema_version": "fairtrial.exit/1",
    "exit": {"exit_code": 0, "timed_out": False, "wall_ms": 5, "log_truncated": False, "tree_truncated": False},
    "relay_exit": None,
    "phases_ms": {"harness": 5},
}
REPORT = {"schema_version": "fairtrial.self-report/1", "files": {"a.json": "e30="}}


def order() -> RunOrder:
    return RunOrder(
        attempt_id=ATTEMPT,
        image="harness-x",
        workspace_tar=b"tar",
        contract=LaunchContract(argv=("x",), env={}, files={}),
        limits=SandboxLimits(),
        artifact_limits=LIMITS,
        upload_token="up_secret",
        canary="canary_x",
    )


def store(**pieces: bytes) -> MemoryArtifacts:
    clock = StepClock()
    artifacts = MemoryArtifacts(clock)
    grants = {
        name: UploadGrant(
            attempt_id=ATTEMPT, token_sha256="0" * 64, name=name, bytes_max=size, expires_at=InstantMs(2**60)
        )
        for name, size in artifact_sizes(LIMITS).items()
    }
    artifacts.grant(tuple(grants.values()))
    names = {"receipt": "receipt.json", "exit": "exit.json", "report": "self-report.json", "log": "harness.log"}
    for piece, data in pieces.items():
        artifacts.store(grants[names[piece]], data, at=clock.now())
    return artifacts


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_complete_set_is_parsed() -> None:
    fine = receipt().model_dump_json().encode()
    found = collect(store(receipt=fine, exit=encoded(EXIT), report=encoded(REPORT), log=b"x"), ATTEMPT, LIMITS)
    assert found.missing == ("tree.jsonl: not handed in",)
    assert found.receipt == receipt()
    assert found.exit is not None
    assert (found.exit.exit_code, found.reports, found.log) == (0, {"a.json": b"{}"}, b"x")


def test_nothing_handed_in_is_named_piece_by_piece() -> None:
    found = collect(store(), ATTEMPT, LIMITS)
    assert found.missing == tuple(f"{name}: not handed in" for name in artifact_sizes(LIMITS))
    assert (found.receipt, found.exit, found.tree, found.receipt_digest) == (None, None, None, None)


@pytest.mark.parametrize(
    "bad",
    [b"", b"{", b"[]", b"null", b"\xff", b"9" * 10_000, b"[" * 50_000, encoded({**EXIT, "more": 1}),
     encoded({**EXIT, "exit": {**EXIT["exit"], "wall_ms": 1.5}}), encoded({**EXIT, "schema_version": "x"})],  # type: ignore[dict-item]
)  # fmt: skip
def test_malformed_pieces_are_named_and_never_crash(bad: bytes) -> None:
    found = collect(store(receipt=bad, exit=bad, report=bad), ATTEMPT, LIMITS)
    assert (found.receipt, found.exit, found.reports) == (None, None, {})
    assert {fault.split(":")[0] for fault in found.missing} >= {"receipt.json", "exit.json", "self-report.json"}


def test_the_receipt_of_another_attempt_is_no_receipt() -> None:
    other = receipt(attempt_id="att-2").model_dump_json().encode()
    found = collect(store(receipt=other), ATTEMPT, LIMITS)
    assert found.receipt is None
    assert "receipt.json: it is the receipt of 'att-2'" in found.missing


def test_only_the_shims_user_may_read_the_order() -> None:
    with tarfile.open(fileobj=io.BytesIO(order_archive(order()))) as tar:
        modes = {member.name: member.mode for member in tar}
        content = {name: tar.extractfile(name) for name in modes}
        texts = {name: file.read() for name, file in content.items() if file is not None}
    assert modes["order/order.json"] == modes["order/shim.pyz"] == 0o400
    assert b"up_secret" in texts["order/order.json"]
    assert texts["order/workspace.tar"] == b"tar"
    assert texts["order/resolv.conf"] == b""


def test_no_secret_is_in_the_containers_environment_or_arguments() -> None:
    spec = container_spec(order(), "/scratch/attempt/att-1", "/run/fairtrial/egress.sock")
    assert "up_secret" not in repr(spec)
    assert [mount.target for mount in spec.mounts if mount.writable] == [
        "/run/fairtrial/state",
        "/run/fairtrial/egress.sock",
        "/workspace",
        "/home/agent",
    ]


def test_the_shim_is_one_file_that_runs_alone_and_only_as_the_first_process(tmp_path: Path) -> None:
    path = tmp_path / "shim.pyz"
    path.write_bytes(shim_archive())
    assert {f"controller/guest/shim.py{suffix}" for suffix in ("", "c")} <= set(zipfile.ZipFile(path).namelist())
    command = [sys.executable, *SHIM_ARGV[1:-1], str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (99, "the shim runs as the first process of a container only\n")


def test_the_system_call_filter_allows_no_new_namespace() -> None:
    profile = json.loads(resources.files("controller.run").joinpath("seccomp.json").read_text())
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    refused = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO" for name in rule["names"]}
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {"unshare", "setns", "mount", "keyctl", "bpf", "userfaultfd", "clone3"} <= refused - allowed
    (clone,) = [rule for rule in profile["syscalls"] if rule["names"] == ["clone"]]
    assert clone["args"] == [{"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    families = {rule["args"][0]["value"] for rule in profile["syscalls"] if rule["names"] == ["socket"]}
    assert families == {1, 2, 10, 16}
