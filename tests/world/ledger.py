"""The Ledger port in memory, and a request to put into one."""

from __future__ import annotations

from controller.domain.ids import AttemptId, LogicalRunId, RequestId, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.spend import ATTEMPT_CLOSED, ATTEMPT_EXPIRED, SpendRow, limit_reached
from controller.domain.usage import AttemptAccount, Dialect, MeteredRequest, Refusal, RequestState, ZeroBillProof
from controller.errors import ControllerFault, InvalidInput, LedgerUnavailable
from controller.ports.clock import Clock
from controller.ports.ledger import AttemptOpening, MeterLife, RequestEnd, storable
from tests.world.clock import CLOCK_START

JUMP_MS_MAX = 30_000
METER = MeterLife(place="here", life="1")


class Memory:
    """What several memory ledgers share, as processes share a file or a database."""

    def __init__(self) -> None:
        self.openings: dict[AttemptId, AttemptOpening] = {}
        self.closed: set[AttemptId] = set()
        self.rows: dict[RequestId, tuple[MeteredRequest, UsdText]] = {}
        self.meters: dict[RequestId, MeterLife] = {}
        self.refusals: list[Refusal] = []
        self.living: set[str] = set()


class MemoryLedger:
    """Forgets everything with the process; otherwise it keeps the contract of the real ones."""

    def __init__(self, clock: Clock, *, meter: MeterLife | None = METER, memory: Memory | None = None) -> None:
        self._clock = clock
        self._meter = meter
        self._began = clock.now() - clock.monotonic_seconds() * 1000
        self._memory = memory or Memory()
        self._openings = self._memory.openings
        self._closed = self._memory.closed
        self._rows = self._memory.rows
        self._refusals = self._memory.refusals
        if meter is not None:
            self._memory.living.add(meter.key)

    def close(self) -> None:
        if self._meter is not None:
            self._memory.living.discard(self._meter.key)

    def open_attempt(self, opening: AttemptOpening) -> None:
        known = self._openings.get(opening.attempt_id)
        taken = any(
            other.token_sha256 == opening.token_sha256 and other.attempt_id != opening.attempt_id
            for other in self._openings.values()
        )
        if known == opening:
            return
        used = any(row.attempt_id == opening.attempt_id for row, _ in self._rows.values())
        if taken or (known is not None and (used or opening.attempt_id not in self._closed)):
            raise InvalidInput(f"ledger: attempt {opening.attempt_id} is open with other terms, or was used")
        self._openings[opening.attempt_id] = opening
        self._closed.discard(opening.attempt_id)

    def close_attempt(self, attempt_id: AttemptId) -> None:
        self._closed.add(attempt_id)

    def find_by_token(self, token_sha256: str) -> AttemptOpening | None:
        for opening in self._openings.values():
            fits = opening.token_sha256 == token_sha256 and opening.expires_at > self._clock.now()
            if fits and opening.attempt_id not in self._closed:
                return opening
        return None

    def accept(self, request: MeteredRequest, *, estimate_usd: UsdText) -> str | None:
        if self._meter is None:
            raise ControllerFault("ledger: it was opened for no meter, so it accepts nothing")
        if abs(self._clock.now() - self._clock.monotonic_seconds() * 1000 - self._began) > JUMP_MS_MAX:
            raise LedgerUnavailable("the clock jumped")
        opening = self._openings.get(request.attempt_id)
        if opening is None:
            raise InvalidInput(f"ledger: attempt {request.attempt_id} was never opened")
        if request.attempt_id in self._closed:
            return ATTEMPT_CLOSED
        if opening.expires_at <= request.accepted_at:
            return ATTEMPT_EXPIRED
        spent = self._spent(opening.logical_run_id)
        reached = limit_reached(spent, opening.limits, attempt_id=opening.attempt_id, counts=request.counts)
        if reached is not None:
            return reached
        if request.request_id in self._rows:
            raise ControllerFault(f"ledger: request {request.request_id} was accepted before")
        sequence = 1 + sum(row.attempt_id == opening.attempt_id for row in spent)
        accepted = {"sequence": sequence, "state": RequestState.ACCEPTED, "note": storable(request.note)}
        self._memory.meters[request.request_id] = self._meter
        self._rows[request.request_id] = (request.model_copy(update=accepted), estimate_usd)
        return None

    def _spent(self, run: LogicalRunId) -> list[SpendRow]:
        return [
            SpendRow(attempt_id=row.attempt_id, counts=row.counts, state=row.state, usd=row.usd, estimate_usd=estimate)
            for row, estimate in self._rows.values()
            if row.logical_run_id == run
        ]

    def mark_sent(self, request_id: RequestId) -> None:
        row, estimate = self._rows.get(request_id, (None, "0"))
        if row is None or row.state is not RequestState.ACCEPTED:
            raise ControllerFault(f"ledger: request {request_id} can't be marked as sent")
        self._rows[request_id] = (row.model_copy(update={"state": RequestState.SENT}), estimate)

    def finish(self, request_id: RequestId, end: RequestEnd) -> None:
        row, estimate = self._rows.get(request_id, (None, "0"))
        if end.state.is_open or row is None or not row.state.is_open:
            raise ControllerFault(f"ledger: request {request_id} can't be ended as {end.state}")
        if end.ended_at < row.accepted_at:
            raise ControllerFault(f"ledger: request {request_id} can't end before it was accepted")
        provider = self._openings[row.attempt_id].provider
        settled_before = any(
            other.state is RequestState.SETTLED
            and other.provider_message_id == end.provider_message_id
            and self._openings[other.attempt_id].provider == provider
            for other, _ in self._rows.values()
        )
        if end.state is RequestState.SETTLED and end.provider_message_id is not None and settled_before:
            raise ControllerFault(f"ledger: provider message {end.provider_message_id} was settled before")
        changes = end.model_dump(exclude={"raw_usage_json", "note", "usage"})
        changes = {name: storable(value) if type(value) is str else value for name, value in changes.items()}
        changes |= {"usage": end.usage, "note": f"{row.note} {storable(end.note)}".strip()}
        self._rows[request_id] = (row.model_copy(update=changes), estimate)

    def refuse(self, refusal: Refusal) -> None:
        self._refusals.append(refusal.model_copy(update={"reason": storable(refusal.reason)}))

    def account(self, attempt_id: AttemptId) -> AttemptAccount:
        return AttemptAccount(
            attempt_id=attempt_id,
            requests=tuple(row for row, _ in self._rows.values() if row.attempt_id == attempt_id),
            refusals=tuple(refusal for refusal in self._refusals if refusal.attempt_id == attempt_id),
            open=attempt_id in self._openings and attempt_id not in self._closed,
        )

    def recover(self, *, at: InstantMs) -> int:
        unknown = 0
        if any(row.accepted_at - at > JUMP_MS_MAX for row, _ in self._rows.values()):
            raise LedgerUnavailable("the clock is behind the newest request")
        for request_id, (row, _) in list(self._rows.items()):
            if self._memory.meters[request_id].key in self._memory.living:
                continue
            ended_at = max(at, row.accepted_at)
            if row.state is RequestState.ACCEPTED:
                proof = ZeroBillProof.NEVER_SENT
                end = RequestEnd(state=RequestState.ZERO_BILL, ended_at=ended_at, usd="0", zero_bill_proof=proof)
                self.finish(request_id, end)
            elif row.state is RequestState.SENT:
                unknown += 1
                self.finish(request_id, RequestEnd(state=RequestState.UNKNOWN, ended_at=ended_at))
        return unknown


def accepted(
    request_id: str,
    attempt_id: str,
    run: str,
    *,
    dialect: Dialect = "openai_chat",
    model: str = "rehearsal-1",
    at: InstantMs = CLOCK_START,
    counts: bool = True,
    note: str = "",
) -> MeteredRequest:
    """A request as the meter asks the ledger to accept it."""
    return MeteredRequest(
        request_id=RequestId(request_id),
        attempt_id=AttemptId(attempt_id),
        logical_run_id=LogicalRunId(run),
        sequence=1,
        dialect=dialect,
        model=model,
        state=RequestState.ACCEPTED,
        accepted_at=at,
        ended_at=None,
        status=None,
        body_digest=sha256_digest(b""),
        provider_message_id=None,
        observed_model=None,
        usage=None,
        usd=None,
        zero_bill_proof=None,
        note=note,
        counts=counts,
    )
