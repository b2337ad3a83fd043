"""Cohorts for a cost index: rows of version 2, as small as a case needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.domain.dataset import Charge, LogicalRunRow
from controller.domain.outcome import EndKind
from tests.world.rounds import attempt, run


def case(
    deliverable: str,
    stack: str,
    task: str,
    *,
    cluster: str | None = None,
    usd: str | None = "1",
    success: bool = True,
    end: EndKind = EndKind.NORMAL,
    latency_ms: int | None = 90_000,
    charges: Sequence[Charge] = (),
    replicate: int = 1,
    **changes: Any,
) -> LogicalRunRow:
    """One task instance of a deliverable, on one stack, measured; by default one attempt, verified, for one dollar."""
    tried = [attempt(usd=usd, verified=success if end is EndKind.NORMAL else None, end=end)]
    result = changes.pop("outcome", None)
    row = run(task, stack, replicate, success=success, attempts=changes.pop("attempts", tried), outcome=result)
    return row.model_copy(
        update={
            "schema_version": "fairtrial.dataset/2",
            "kind": "measured",
            "stratum": deliverable,
            "cluster": cluster or f"fixture-{task}",
            "latency_ms": latency_ms,
            "charges": tuple(charges),
            **changes,
        }
    )


def cohort(
    spends: Mapping[str, Sequence[str]], successes: Mapping[str, Sequence[int]], *, outcome: str = "refund"
) -> list[LogicalRunRow]:
    """One outcome: for every stack, what each of its instances cost and whether it succeeded; one cluster each."""
    return [
        case(outcome, stack, f"{outcome}-{place}", usd=usd, success=bool(successes[stack][place]))
        for stack in spends
        for place, usd in enumerate(spends[stack])
    ]


def whole(outcomes: int = 10, stacks: int = 6, instances: int = 3) -> list[LogicalRunRow]:
    """A complete cohort with every outcome known; each stack fails the last instance of each outcome."""
    return [
        case(f"outcome-{o}", f"stack-{s}", f"task-{o}-{i}", usd=f"{s + 1}.25", success=i < instances - 1)
        for o in range(outcomes)
        for s in range(stacks)
        for i in range(instances)
    ]
