"""Typed identifiers, and the one place that says how they are spelled.

A logical run is `<task>.<arm>.r<replicate>`; an attempt is `att-<20 hex>-<number>`, a DNS label, since it names its VM.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final, NewType

from pydantic import StringConstraints

RoundId = NewType("RoundId", str)
TaskId = NewType("TaskId", str)
ArmId = NewType("ArmId", str)
LogicalRunId = NewType("LogicalRunId", str)
AttemptId = NewType("AttemptId", str)
RequestId = NewType("RequestId", str)

SLUG_PATTERN: Final = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$"  # 1 to 40 characters, hyphens only inside
Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


def sha256_digest(data: bytes) -> str:
    """`sha256:<hex>` of the bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def logical_run_id(task: TaskId, arm: ArmId, replicate: int) -> LogicalRunId:
    """The identity of one cell at one replicate (replicates count from 1)."""
    return LogicalRunId(f"{task}.{arm}.r{replicate}")


def attempt_id(manifest_digest: str, run: LogicalRunId, number: int) -> AttemptId:
    """The identity of one attempt, a DNS label that also names its sandbox.

    It is a pure function of the frozen plan, so a controller that restarts finds the machine it leased.
    """
    seed = f"{manifest_digest}|{run}|a{number}".encode()
    return AttemptId(f"att-{hashlib.sha256(seed).hexdigest()[:20]}-{number}")
