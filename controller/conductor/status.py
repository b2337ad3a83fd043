"""How a round stands, from its log: for `fairtrial status`, `watch` and the progress of `demo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from controller.conductor.history import RunHistory, run_histories
from controller.domain.bodies import AttemptClassified
from controller.domain.money import sum_usd
from controller.domain.outcome import EndKind
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim
from controller.evidence.stops import standing_stop

RoundState = Literal["frozen", "running", "stopped", "halted", "finished", "settled", "closed"]


class CellStatus(Record):
    """One logical run: where it is, and why it waits if it does."""

    run: str
    state: Literal["waiting", "running", "halted", "success", "failure", "invalid"]
    attempts: int
    detail: str


class RoundStatus(Record):
    """The whole round in numbers. `usd` is null when any finished attempt's cost is unknown."""

    round_id: str
    state: RoundState
    runs: int
    scored: int
    halted: int
    attempts: int
    usd: str | None
    stopped_by: str | None
    cells: tuple[CellStatus, ...]


def round_status(manifest: RoundManifest, statements: Sequence[Statement]) -> RoundStatus:
    """Pure: the same log gives the same status."""
    histories = run_histories(statements)
    cells = tuple(_cell(run.id, histories.get(run.id)) for run in manifest.schedule)
    kinds = {statement.kind for statement in statements}
    scored = sum(1 for cell in cells if cell.state in ("success", "failure", "invalid"))
    halted = sum(1 for cell in cells if cell.state == "halted")
    reason = standing_stop(statements)
    settled = [h.account(a) for h in histories.values() for a in h.attempts if a.classified is not None]
    return RoundStatus(
        round_id=manifest.round_id,
        state=_state(kinds, scored == len(cells), halted > 0, reason is not None),
        runs=len(cells),
        scored=scored,
        halted=halted,
        attempts=sum(cell.attempts for cell in cells),
        usd=sum_usd(account.usd if account else None for account in settled),
        stopped_by=f"{reason.rule}: {reason.detail}" if reason else None,
        cells=cells,
    )


def common_fault(statements: Sequence[Statement]) -> str | None:
    """Why the last attempt failed, when every single one failed for the sandbox: then no harness ever had its turn."""
    ended = [claim(s, AttemptClassified) for s in statements if s.kind is StatementKind.ATTEMPT_CLASSIFIED]
    return ended[-1].reason if ended and all(each.end is EndKind.INFRASTRUCTURE for each in ended) else None


def _state(kinds: set[StatementKind], complete: bool, halted: bool, stopped: bool) -> RoundState:
    if StatementKind.ROUND_CLOSED in kinds:
        return "closed"
    if StatementKind.ROUND_SETTLED in kinds:
        return "settled"
    if complete:
        return "finished"
    if stopped:
        return "stopped"
    if halted:
        return "halted"
    return "running" if StatementKind.ROUND_STARTED in kinds else "frozen"


def _cell(run: str, history: RunHistory | None) -> CellStatus:
    if history is None:
        return CellStatus(run=run, state="waiting", attempts=0, detail="")
    attempts = len(history.attempts)
    if history.outcome is not None:
        last = history.attempts[-1].classified if history.attempts else None
        return CellStatus(run=run, state=history.outcome, attempts=attempts, detail=last.reason if last else "")
    if history.halted is not None:
        detail = f"attempt {history.halted.number} ({history.halted.attempt_id}): {history.halted.reason}"
        return CellStatus(run=run, state="halted", attempts=attempts, detail=detail)
    return CellStatus(run=run, state="running", attempts=attempts, detail="")
