"""How an attempt ended, what verification said, and what may be tried again."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.record import Record
from controller.errors import Blame


class EndKind(StrEnum):
    """How an attempt's execution ended, as witnessed from outside the harness."""

    NORMAL = "normal"  # the harness exited 0 before the hard limits
    HARNESS_CRASH = "harness_crash"
    TIMEOUT = "timeout"
    HARD_LIMIT = "hard_limit"  # a request or money ceiling was crossed: a failure, never retried
    PROVIDER_ERROR = "provider_error"  # the meter saw 5xx, 529 or 429 as the last answer and the harness then failed
    INFRASTRUCTURE = "infrastructure"  # sandbox lost, limit not read back, isolation probe answered
    WRITTEN_OFF = "written_off"  # a person decided that an ambiguous attempt is a failure


RETRYABLE: frozenset[EndKind] = frozenset(
    {EndKind.HARNESS_CRASH, EndKind.TIMEOUT, EndKind.PROVIDER_ERROR, EndKind.INFRASTRUCTURE}
)

# Ended from outside before the harness came to an end of its own: the time it would have taken is at least this.
CUT_SHORT: frozenset[EndKind] = frozenset(
    {EndKind.TIMEOUT, EndKind.HARD_LIMIT, EndKind.INFRASTRUCTURE, EndKind.WRITTEN_OFF}
)

BLAME: dict[EndKind, Blame | None] = {
    EndKind.NORMAL: None,
    EndKind.HARNESS_CRASH: Blame.HARNESS,
    EndKind.TIMEOUT: Blame.HARNESS,
    EndKind.HARD_LIMIT: Blame.HARNESS,
    EndKind.PROVIDER_ERROR: Blame.PROVIDER,
    EndKind.INFRASTRUCTURE: Blame.SANDBOX,
    EndKind.WRITTEN_OFF: Blame.CONTROLLER,
}


class ArtifactRecord(Record):
    """A file the guest uploaded under a grant, by digest. Acknowledged only after it was durable."""

    name: str
    digest: Digest
    bytes: int
    received_at: InstantMs


class Gate(Record):
    """One mandatory check of a verdict."""

    name: str
    passed: bool
    detail: str


class VerifierOutput(Record):
    """What the judge found when it ran the code under test, in fields; its own words by digest."""

    exit_code: int | None  # of the code under test; null when it was killed or never ran
    cases: int
    passed: int
    failed: tuple[str, ...]  # as the frozen list of cases names them
    report_bytes: int
    report_digest: Digest


class Verdict(Record):
    """What verification in a network-less machine said of one patch."""

    passed: bool
    gates: tuple[Gate, ...]
    patch_digest: Digest | None
    changed_paths: tuple[str, ...]
    soundness: Literal["black-box", "in-process"]
    output: VerifierOutput | None = None  # null: an earlier gate failed, or every machine was lost


class SelfReport(Record):
    """What the harness says of itself. Its cost is kept beside the meter's; nothing is computed from any of it."""

    usd: UsdText | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    turns: int | None = None
    tool_calls: int | None = None


class HarnessExit(Record):
    """What the trusted shim around the harness wrote after it ended."""

    exit_code: int | None
    timed_out: bool
    wall_ms: int
    processes_peak: int | None = None
    memory_peak_bytes: int | None = None
    oom_kills: int | None = None
    log_truncated: bool
    tree_truncated: bool
