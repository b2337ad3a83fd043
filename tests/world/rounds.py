"""Synthetic rounds whose truth is known: rows as they would stand in a dataset, without a machine or a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from random import Random

from controller.domain.dataset import AttemptRow, LogicalRunRow
from controller.domain.ids import ArmId, TaskId, attempt_id, logical_run_id
from controller.domain.money import usd_to_text
from controller.domain.outcome import EndKind

MANIFEST = "sha256:" + hashlib.sha256(b"synthetic manifest").hexdigest()
SEED = hashlib.sha256(b"synthetic seed").hexdigest()
MODEL = "rehearsal-1"


def attempt(
    number: int = 1,
    *,
    end: EndKind = EndKind.NORMAL,
    reason: str = "",
    wall_ms: int = 60_000,
    usd: str | None = "0.05",
    verified: bool | None = True,
    would_have_passed: bool = False,
    turns: int | None = 6,
    name: str = "att-0",
) -> AttemptRow:
    """One attempt with ordinary values."""
    return AttemptRow(
        attempt_id=name,
        number=number,
        end=end,
        reason=reason,
        wall_ms=wall_ms,
        usd=usd,
        requests=7,
        turns=turns,
        tool_calls=None if turns is None else turns - 1,
        tokens={"in": 1_000, "read": 9_000, "w5m": 2_000, "out": 800},
        self_reported_usd=None,
        verified=verified,
        would_have_passed=would_have_passed,
    )


def run(
    task: str,
    arm: str,
    replicate: int,
    *,
    success: bool = True,
    attempts: Sequence[AttemptRow] | None = None,
    outcome: str | None = None,
    usd: str | None = "0.05",
    wall_ms: int = 60_000,
    visibility: str = "public",
) -> LogicalRunRow:
    """One logical run; by default one attempt that ended normally and passed or failed verification."""
    tried = tuple(attempts) if attempts is not None else (attempt(usd=usd, wall_ms=wall_ms, verified=success),)
    costs = [one.usd for one in tried]
    known = None if None in costs else _sum([cost for cost in costs if cost is not None])
    return LogicalRunRow.model_validate(
        {
            "round_id": "round-1",
            "manifest_digest": MANIFEST,
            "kind": "rehearsal",
            "task": task,
            "cluster": f"repo-{task}",
            "stratum": "small",
            "visibility": visibility,
            "arm": arm,
            "model": MODEL,
            "replicate": replicate,
            "outcome": outcome or ("success" if success else "failure"),
            "usd": known,
            "wall_ms": sum(one.wall_ms for one in tried) if tried else None,
            "attempts": tried,
            "scored_attempt": tried[-1].number if tried else None,
        }
    )


def _sum(costs: Sequence[str]) -> str:
    return usd_to_text(sum((Fraction(cost) for cost in costs), Fraction(0)))


def realistic(tasks: Sequence[str], arms: Sequence[str], *, seed: int = 1, replicates: int = 3) -> list[LogicalRunRow]:
    """Harder and easier tasks, better and worse arms, crashes, provider errors, timeouts and their retries."""
    chance = Random(seed)
    ease = {task: chance.uniform(0.15, 0.95) for task in tasks}
    skill = {arm: chance.uniform(-0.2, 0.2) for arm in arms}
    price = {arm: chance.uniform(0.02, 0.12) for arm in arms}
    rows = []
    for task in tasks:
        for arm in arms:
            for replicate in range(1, replicates + 1):
                rows.append(_realistic_run(task, arm, replicate, ease[task] + skill[arm], price[arm], chance))
    return rows


def _realistic_run(task: str, arm: str, replicate: int, ease: float, price: float, chance: Random) -> LogicalRunRow:
    identity = logical_run_id(TaskId(task), ArmId(arm), replicate)
    tried: list[AttemptRow] = []
    for number in (1, 2, 3):
        name = attempt_id(MANIFEST, identity, number)
        usd = f"{price * chance.lognormvariate(0, 0.6):.9f}"
        wall_ms = int(90_000 * chance.lognormvariate(0, 0.5))
        fate = chance.random()
        if fate < 0.03:
            tried.append(
                attempt(number, end=EndKind.PROVIDER_ERROR, reason="provider answered 529", wall_ms=wall_ms // 3,
                        usd=usd, verified=None, name=name)
            )  # fmt: skip
        elif fate < 0.05:
            tried.append(
                attempt(number, end=EndKind.HARNESS_CRASH, reason="exit code 1", wall_ms=wall_ms, usd=usd,
                        verified=None, would_have_passed=fate < 0.04, name=name)
            )  # fmt: skip
        elif fate < 0.06:
            tried.append(
                attempt(number, end=EndKind.TIMEOUT, reason="30 minutes", wall_ms=1_800_000, usd=usd, verified=None,
                        name=name)
            )  # fmt: skip
        else:
            passed = chance.random() < ease
            reason = "" if passed else "verifier: hidden cases failed"
            tried.append(attempt(number, reason=reason, wall_ms=wall_ms, usd=usd, verified=passed, name=name))
            return run(task, arm, replicate, success=passed, attempts=tried)
    return run(task, arm, replicate, success=False, attempts=tried)


def jsonl(rows: Sequence[LogicalRunRow]) -> bytes:
    """The rows as the bytes of a dataset."""
    return b"".join(row.model_dump_json().encode() + b"\n" for row in rows)
