"""Every limit of an attempt, in one place, each with its unit and its source."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from controller.domain.money import UsdText
from controller.domain.record import Record

GIB: Final = 2**30
TASKS_MAX: Final = 5_000  # of a round; draws of 240 kB each are 1.2 GB, and a glob that catches more is a mistake


class SandboxLimits(Record):
    """What one attempt's VM and container may use. The defaults are the fixed values of the harness-round protocol."""

    vm_cpus: int = Field(default=4, ge=1)
    vm_memory_bytes: int = Field(default=8 * GIB, ge=256 * 2**20)
    cpus: int = Field(default=3, ge=1)
    memory_bytes: int = Field(default=6 * GIB, ge=64 * 2**20)
    processes: int = Field(default=1024, ge=16)
    disk_bytes: int = Field(default=20 * GIB, ge=2**30)
    agent_seconds: int = Field(default=30 * 60, ge=1, le=30 * 60)


class SpendLimits(Record):
    """What one attempt and one logical run may spend at the model provider."""

    requests_per_attempt: int = Field(default=60, ge=1, le=60)
    requests_per_logical_run: int = Field(default=180, ge=1, le=180)
    usd_per_attempt: UsdText = "1.00"
    usd_per_logical_run: UsdText = "3.00"
    count_tokens_per_attempt: int = Field(default=120, ge=0)  # free at the provider, so outside the 60; still bounded


class ArtifactLimits(Record):
    """What the guest may upload. A tree larger than this is a harness outcome, not an infrastructure fault."""

    tree_bytes_max: int = 64 * 2**20
    tree_entries_max: int = 20_000
    file_bytes_max: int = 16 * 2**20
    log_bytes_max: int = 4 * 2**20
    receipt_bytes_max: int = 256 * 2**10


ATTEMPTS_PER_LOGICAL_RUN_MAX: Final = 3  # harness-round: the initial attempt plus no more than two automatic retries
VM_MARGIN_SECONDS: Final = 10 * 60  # boot, push, probes and upload around the 30 minutes, before the VM dies by itself
