"""What the walls must be, whether a receipt proves them, and how an attempt ended. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.outcome import EndKind
from controller.domain.receipt import Collected, Found, IsolationReceipt, RunOrder
from controller.domain.usage import AttemptAccount, ZeroBillProof
from controller.guest.shim import AGENT_UID, BROKEN, DISK, ORDER_SCHEMA, STARTED_BEFORE, UPLOAD_FAILED
from controller.ports.pool import Isolation
from controller.run.probes import ordered_probes

RECEIPT: Final = "receipt.json"
TREE: Final = "tree.jsonl"
LOG: Final = "harness.log"
REPORT: Final = "self-report.json"
LAST_ARTIFACT: Final = "exit.json"  # its presence means that everything before it is durable

CPU_PERIOD_US: Final = 100_000
UNREACHABLE: Final = 502  # what the meter answers when it could not reach the provider
CANARY_VARIABLE: Final = "FAIRTRIAL_CANARY"
CANARY_FILE: Final = ".fairtrial-canary"  # in the home directory, which is never harvested
CANARY_NOTE: Final = "A marker of this machine. It opens nothing, and nothing needs it."

EXIT_BYTES_MAX: Final = 2**16
OVERHEAD_SECONDS_MAX: Final = 420  # probes before, and the walk and the uploads after the harness, under emulation


def artifact_sizes(limits: ArtifactLimits) -> dict[str, int]:
    """The artifacts of one attempt and the most bytes each may have, in the order in which they are uploaded."""
    return {
        RECEIPT: limits.receipt_bytes_max,
        TREE: limits.tree_bytes_max,
        LOG: limits.log_bytes_max,
        REPORT: limits.log_bytes_max,
        LAST_ARTIFACT: EXIT_BYTES_MAX,
    }


def expected_walls(limits: SandboxLimits) -> dict[str, Found]:
    """What must be found from inside the container, as the kernel prints it."""
    return {
        "allowed": 200,
        "capabilities": "0" * 16,
        DISK: limits.disk_bytes,
        "cpu_max": f"{limits.cpus * CPU_PERIOD_US} {CPU_PERIOD_US}",
        "gid": AGENT_UID,
        "groups": 0,
        "home": (),
        "interfaces": ("lo",),
        "memory_max": str(limits.memory_bytes),
        "memory_swap_max": "0",
        "no_new_privs": "1",
        "pids_max": str(limits.processes),
        "resolvers": 0,
        "routes": 0,
        "seccomp": "2",
        "uid": AGENT_UID,
        "workspace": (),
    }


def with_canary(contract: LaunchContract, canary: str) -> LaunchContract:
    """The contract with the canary where any program of the attempt can read it, the same for every harness."""
    return contract.model_copy(
        update={
            "env": {**contract.env, CANARY_VARIABLE: canary},
            "files": {**contract.files, CANARY_FILE: f"{CANARY_NOTE}\n{canary}\n"},
        }
    )


def order_json(order: RunOrder) -> dict[str, Any]:
    """The order as the shim reads it."""
    limits = order.artifact_limits
    return {
        "schema_version": ORDER_SCHEMA,
        "attempt_id": order.attempt_id,
        "upload_token": order.upload_token,
        "contract": with_canary(order.contract, order.canary).model_dump(mode="json"),
        "agent_seconds": order.limits.agent_seconds,
        "expected": expected_walls(order.limits),
        "probes": [probe.model_dump(mode="json") for probe in ordered_probes(order.probe_names)],
        "tree_bytes_max": limits.tree_bytes_max,
        "tree_entries_max": limits.tree_entries_max,
        "file_bytes_max": limits.file_bytes_max,
        "log_bytes_max": limits.log_bytes_max,
        "report_bytes_max": limits.log_bytes_max // 2,  # base64 and the JSON around it stay below the upload's limit
    }


def receipt_mismatches(
    receipt: IsolationReceipt | None,
    limits: SandboxLimits,
    *,
    isolation: Isolation = Isolation.VM,
    probe_names: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Everything that forbids an attempt to count, judged from what was found and not from the shim's own list.

    `probe_names` are those of the order: each must have been tried, as every fixed probe must.
    Only with `container` isolation, whose results can't be published, may a machine leave limits unenforced.
    """
    if receipt is None:
        return (f"{RECEIPT}: there is no readable isolation receipt",)
    excused = set(receipt.unenforced) if isolation is Isolation.CONTAINER else set()
    faults = [f"{name}: this machine does not enforce it" for name in receipt.unenforced if name not in excused]
    for name, value in expected_walls(limits).items():
        found = receipt.found.get(name)
        if name not in excused and not _holds(name, value, found):
            faults.append(f"{name}: expected {json.dumps(value)}, found {json.dumps(found)}")
    tried = {probe.name for probe in receipt.probes}
    faults += [f"probe {probe.name}: not tried" for probe in ordered_probes(probe_names) if probe.name not in tried]
    faults += [
        f"probe {probe.name}: {probe.outcome}, {probe.detail}" for probe in receipt.probes if probe.outcome != "refused"
    ]
    return tuple(faults or receipt.mismatches)


def _holds(name: str, expected: Found, found: Found) -> bool:
    if name == DISK and isinstance(found, int) and isinstance(expected, int):
        return 0 < found <= expected
    return type(found) is type(expected) and found == expected


def judge_end(
    collected: Collected, mismatches: Sequence[str], account: AttemptAccount, limits: SpendLimits
) -> tuple[EndKind, str]:
    """How the attempt ended, and the reason in one line. Only what was witnessed from outside the harness decides.

    An attempt whose settled cost is above its ceiling ended at a hard limit, refused or not.
    """
    if mismatches:
        return EndKind.INFRASTRUCTURE, mismatches[0]
    limit = next((refusal for refusal in account.refusals if refusal.limit), None)
    if limit is not None:
        return EndKind.HARD_LIMIT, f"the meter refused a request: {limit.reason}"
    spent = sum((usd_from_text(request.usd) for request in account.requests if request.usd), Fraction(0))
    if spent > usd_from_text(limits.usd_per_attempt):
        return EndKind.HARD_LIMIT, f"cost {usd_to_text(spent)} USD is above the ceiling of {limits.usd_per_attempt} USD"
    ended = collected.exit
    if ended is None:
        return EndKind.HARNESS_CRASH, "the container ended before its exit record was handed in"
    if ended.timed_out:
        return EndKind.TIMEOUT, f"stopped at the hard limit after {ended.wall_ms} ms"
    if ended.exit_code != 0:
        status = _last_status(account)
        if status is not None and (status in (429, 529) or status >= 500):
            return EndKind.PROVIDER_ERROR, f"the provider's last answer was {status}; then exit code {ended.exit_code}"
        killed = f", {ended.oom_kills} processes killed for memory" if ended.oom_kills else ""
        return EndKind.HARNESS_CRASH, f"exit code {ended.exit_code}{killed}"
    return EndKind.NORMAL, "exit code 0"


def _last_status(account: AttemptAccount) -> int | None:
    """The provider's last answer; a provider that could not be reached counts as a bad gateway."""
    counted = [request for request in account.requests if request.counts]
    if not counted:
        return None
    last = max(counted, key=lambda request: request.sequence)
    return UNREACHABLE if last.zero_bill_proof is ZeroBillProof.NEVER_SENT else last.status


def shim_fault(exit_code: int | None) -> str | None:
    """Why this exit code of the shim means that the sandbox failed us; None when the artifacts tell the rest."""
    known: Mapping[int | None, str] = {
        None: "the container was still running at its deadline and was killed",
        STARTED_BEFORE: "the container had been started before and did not end",
        UPLOAD_FAILED: "the result service did not take an artifact",
        BROKEN: "the shim could not carry out the order",
    }
    return known.get(exit_code)
