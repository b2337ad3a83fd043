"""What an analysis must be told beside the data. Everything here is frozen before the first outcome is seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import Field

from controller.domain.dataset import LogicalRunRow
from controller.domain.limits import TASKS_MAX
from controller.domain.plan import Seed
from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.protocols.harness_round.decision import MARGIN_POINTS, SAVING_PERCENT
from controller.protocols.harness_round.manifest import RESAMPLES, HarnessRoundManifest, all_pairs

ARMS_MAX: Final = 100  # 4,950 pairs; from 251 on, Holm's first step can reject nothing with 10,000 resamples


class PlanInputs(Record):
    """The plan of one analysis. `comparisons` are unordered pairs; m, the size of each Holm family, is their number."""

    seed: Seed
    comparisons: tuple[tuple[str, str], ...]
    arms: tuple[str, ...] = Field(min_length=1)
    own_arms: tuple[str, ...] = ()  # ours: when one loses, the headline names the winner first
    tasks: tuple[str, ...] = Field(min_length=1)
    replicates: int = Field(ge=1, le=10)
    resamples: int = Field(default=RESAMPLES, ge=100, le=1_000_000)
    margin_points: int = Field(default=MARGIN_POINTS, ge=0, le=100)
    saving_percent: int = Field(default=SAVING_PERCENT, ge=0, le=100)


def plan_of_manifest(manifest: HarnessRoundManifest) -> PlanInputs:
    """The plan of a frozen round."""
    return PlanInputs(
        seed=manifest.seed,
        comparisons=manifest.analysis.comparisons,
        arms=tuple(sorted(arm.id for arm in manifest.arms)),
        own_arms=tuple(sorted(arm.id for arm in manifest.arms if arm.is_own)),
        tasks=tuple(sorted(task.id for task in manifest.tasks)),
        replicates=manifest.replicates,
        resamples=manifest.analysis.resamples,
        margin_points=manifest.analysis.margin_points,
        saving_percent=manifest.analysis.saving_percent,
    )


def plan_of_rows(rows: Sequence[LogicalRunRow], *, seed: str | None = None) -> PlanInputs:
    """A plan for a dataset that comes without a manifest: whatever it names counts as predeclared.

    Without a seed, the digits of the manifest's digest serve as one: nobody can choose them after the fact. Raises
    InvalidInput for a dataset without rows, with too many arms or tasks, and for a malformed seed.
    """
    if not rows:
        raise InvalidInput("the dataset has no rows")
    arms, tasks = tuple(sorted({row.arm for row in rows})), tuple(sorted({row.task for row in rows}))
    for kind, count, most in (("arms", len(arms), ARMS_MAX), ("tasks", len(tasks), TASKS_MAX)):
        if count > most:
            raise InvalidInput(f"the dataset names {count:,} {kind}; at most {most:,} can be compared")
    return PlanInputs(
        seed=seed_of(rows, seed),
        comparisons=all_pairs(arms),
        arms=arms,
        tasks=tasks,
        replicates=min(10, max(row.replicate for row in rows)),
    )


def seed_of(rows: Sequence[LogicalRunRow], seed: str | None) -> str:
    """The seed as given, or else the digits of the manifest's digest. Raises InvalidInput for a malformed one."""
    if seed is not None and re.fullmatch(r"[0-9a-f]{64}", seed) is None:
        raise InvalidInput(f"seed: {seed[:80]!r} is not 64 hex digits in lower case")
    return seed or rows[0].manifest_digest.removeprefix("sha256:")
