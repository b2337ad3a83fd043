"""What the controller orders of a harness container, and what comes back: receipt, exit record, artifacts."""

from __future__ import annotations

from typing import Literal

from controller.domain.ids import Digest
from controller.domain.launch import LaunchContract
from controller.domain.limits import ArtifactLimits, SandboxLimits
from controller.domain.outcome import HarnessExit
from controller.domain.record import Record

ProbeKind = Literal["tcp", "udp", "icmp", "name", "raw", "packet", "vsock", "route", "userns"]
Found = str | int | tuple[str, ...] | None


class RunOrder(Record):
    """One harness, started once. The token opens the upload grants of this attempt; the canary opens nothing."""

    attempt_id: str
    image: str
    workspace_tar: bytes  # the base, with its one-commit `.git` or without
    contract: LaunchContract
    limits: SandboxLimits
    artifact_limits: ArtifactLimits
    upload_token: str
    canary: str  # a secret of this attempt that no harness has a reason to publish
    probe_names: tuple[str, ...] = ()  # host names that must not resolve, besides those that are always tried


class RunResult(Record):
    """How the container ended. The shim's exit code is 0 when every artifact was acknowledged."""

    exit_code: int | None
    oom_killed: bool
    output: str  # what the shim said, for a person


class Probe(Record):
    """One way out that must be closed."""

    name: str
    kind: ProbeKind
    host: str = ""
    port: int = 0


class ProbeOutcome(Record):
    """What the kernel answered. `silent` is not a refusal: something let the packet leave."""

    name: str
    kind: ProbeKind
    outcome: Literal["refused", "reached", "silent"]
    detail: str


class IsolationReceipt(Record):
    """The walls of one attempt as found from inside its container, before the harness was started."""

    schema_version: Literal["fairtrial.receipt/1"]
    attempt_id: str
    found: dict[str, Found]
    unenforced: tuple[str, ...]  # limits that this machine does not hold; never any in a virtual machine
    probes: tuple[ProbeOutcome, ...]
    mismatches: tuple[str, ...]
    phases_ms: dict[str, int]

    @property
    def refused(self) -> int:
        """How many probes were refused."""
        return sum(probe.outcome == "refused" for probe in self.probes)


class ExitReport(Record):
    """The shim's last upload."""

    schema_version: Literal["fairtrial.exit/1"]
    exit: HarnessExit
    relay_exit: int | None  # the relay's exit code when it did not outlive the harness
    phases_ms: dict[str, int]


class Collected(Record):
    """An attempt's artifacts, parsed. `missing` names every piece that is absent or malformed, with the fault."""

    receipt: IsolationReceipt | None
    receipt_digest: Digest | None
    exit: HarnessExit | None
    relay_exit: int | None
    tree: bytes | None  # as uploaded; parse it with `tree_stream`
    log: bytes
    reports: dict[str, bytes]
    missing: tuple[str, ...]
