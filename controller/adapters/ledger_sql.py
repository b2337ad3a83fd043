"""What every SQL ledger shares: tables, statements, row mapping, and the one rule of ceilings.

Statements are written once, with `?` for values, and run unchanged on SQLite and PostgreSQL. What differs lies behind
`Store` and `Session`: transactions, locks, and how a dead meter is told from a living one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.spend import ATTEMPT_CLOSED, ATTEMPT_EXPIRED, SpendRow, limit_reached
from controller.domain.usage import AttemptAccount, MeteredRequest, Refusal, RequestState, Usage, ZeroBillProof
from controller.errors import ControllerFault, InvalidInput, LedgerUnavailable
from controller.ports.clock import Clock
from controller.ports.ledger import AttemptOpening, MeterLife, RequestEnd, storable

T = TypeVar("T")
CLOCK_JUMP_SECONDS_MAX: Final = 30  # clocks of hosts that are kept right differ by less; an attempt's life is minutes
CLOCK: Final = (
    "Set this machine's clock right and let a daemon keep it by slewing, then start the meter again: no expiry can be"
    " trusted until then."
)


class Conflict(Exception):
    """A constraint or trigger of the database refused a statement; the message is the database's."""


class Session(Protocol):
    """One transaction of a store. Any error but Conflict is the store's own affair."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        ...

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched. Raises Conflict."""
        ...

    def lock(self, name: str) -> None:
        """Keep every other transaction that locks the name waiting until this one ends."""
        ...

    def is_gone(self, meter: str) -> bool:
        """Whether no transaction of that meter's life can ever commit again, as far as can be proven."""
        ...


class Store(Protocol):
    """Durable transactions. Any I/O error poisons the store: this and every later call raise LedgerUnavailable."""

    def write(self, job: Callable[[Session], T]) -> T:
        """Run the job in a transaction of its own; durable when it returns. A FairtrialError undoes it."""
        ...

    def read(self, job: Callable[[Session], T]) -> T:
        """Run a read-only job on one committed state."""
        ...

    def close(self) -> None:
        """Finish what runs and let go of the store. Idempotent."""
        ...


def tables(*, number: str, position: str, options: str) -> str:
    """The tables and indexes, in the words of one database for an integer, a rising key, and a table's options."""
    return f"""
CREATE TABLE IF NOT EXISTS attempts (
  attempt_id TEXT PRIMARY KEY, logical_run_id TEXT NOT NULL, token_sha256 TEXT NOT NULL UNIQUE,
  opening TEXT NOT NULL, expires_at {number} NOT NULL, closed {number} NOT NULL DEFAULT 0){options};
CREATE TABLE IF NOT EXISTS requests (
  position {position}, request_id TEXT NOT NULL UNIQUE,
  attempt_id TEXT NOT NULL REFERENCES attempts, logical_run_id TEXT NOT NULL, sequence {number} NOT NULL,
  counts {number} NOT NULL, provider TEXT NOT NULL, dialect TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL,
  accepted_at {number} NOT NULL, ended_at {number}, status {number}, body_digest TEXT NOT NULL,
  provider_message_id TEXT, observed_model TEXT, served_tier TEXT, served_speed TEXT, served_geo TEXT,
  usage TEXT, usd TEXT, zero_bill_proof TEXT, raw_usage TEXT NOT NULL DEFAULT '', note TEXT NOT NULL,
  estimate_usd TEXT NOT NULL, meter TEXT NOT NULL, UNIQUE (attempt_id, sequence),
  CHECK (ended_at >= accepted_at), CHECK ((ended_at IS NULL) = (state IN ('accepted', 'sent')))){options};
CREATE INDEX IF NOT EXISTS requests_of_run ON requests (logical_run_id);
CREATE INDEX IF NOT EXISTS requests_open ON requests (meter) WHERE state IN ('accepted', 'sent');
CREATE UNIQUE INDEX IF NOT EXISTS settled_once ON requests (provider, provider_message_id) WHERE state = 'settled';
CREATE TABLE IF NOT EXISTS refusals (
  position {position}, attempt_id TEXT, at {number} NOT NULL, reason TEXT NOT NULL,
  status {number} NOT NULL, is_limit {number} NOT NULL){options};
CREATE INDEX IF NOT EXISTS refusals_of_attempt ON refusals (attempt_id);
CREATE TABLE IF NOT EXISTS identity (name TEXT PRIMARY KEY, value TEXT NOT NULL){options};
"""


class SqlLedger:
    """The Ledger port over a store. The meter accepts; the controller opens attempts and reads."""

    def __init__(self, store: Store, clock: Clock, meter: MeterLife | None) -> None:
        self._store = store
        self._clock = clock
        self._meter = meter
        self._began = clock.now() - clock.monotonic_seconds() * 1000

    def _check_clock(self) -> None:
        """Raises LedgerUnavailable when the wall clock has jumped since the ledger was opened."""
        jumped = (self._clock.now() - self._clock.monotonic_seconds() * 1000 - self._began) / 1000
        if abs(jumped) > CLOCK_JUMP_SECONDS_MAX:
            raise LedgerUnavailable(f"the clock jumped by {jumped:.0f} seconds, so nothing is admitted", remedy=CLOCK)

    def close(self) -> None:
        """Finish what runs and let go of the store."""
        self._store.close()

    def open_attempt(self, opening: AttemptOpening) -> None:
        """See Ledger. Raises InvalidInput for a different opening under a known id, or a token already in use."""
        text = opening.model_dump_json()

        def job(db: Session) -> None:
            db.lock(_attempt_lock(opening.attempt_id))
            known = db.rows(
                "SELECT opening, closed, EXISTS (SELECT 1 FROM requests r WHERE r.attempt_id = a.attempt_id)"
                " FROM attempts a WHERE attempt_id = ?",
                (opening.attempt_id,),
            )
            if known and known[0][0] == text:
                return
            if known and (not known[0][1] or known[0][2]):
                raise InvalidInput(
                    f"ledger: attempt {opening.attempt_id} is already open with other terms, or was used"
                )
            try:
                # An attempt that was closed before it made any request may begin again under a new token.
                db.change("DELETE FROM attempts WHERE attempt_id = ?", (opening.attempt_id,))
                db.change(
                    "INSERT INTO attempts (attempt_id, logical_run_id, token_sha256, opening, expires_at)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (opening.attempt_id, opening.logical_run_id, opening.token_sha256, text, opening.expires_at),
                )
            except Conflict:
                raise InvalidInput(
                    f"ledger: the token of attempt {opening.attempt_id} belongs to another attempt"
                ) from None

        self._store.write(job)

    def close_attempt(self, attempt_id: AttemptId) -> None:
        """See Ledger. Closing an unknown or closed attempt does nothing."""

        def job(db: Session) -> None:
            db.lock(_attempt_lock(attempt_id))
            db.change("UPDATE attempts SET closed = 1 WHERE attempt_id = ?", (attempt_id,))

        self._store.write(job)

    def find_by_token(self, token_sha256: str) -> AttemptOpening | None:
        """See Ledger."""
        query = "SELECT opening FROM attempts WHERE token_sha256 = ? AND closed = 0 AND expires_at > ?"
        found = self._store.read(lambda db: db.rows(query, (token_sha256, self._clock.now())))
        return AttemptOpening.model_validate_json(found[0][0]) if found else None

    def accept(self, request: MeteredRequest, *, estimate_usd: UsdText) -> str | None:
        """See Ledger. The ledger numbers the requests of an attempt itself; the given sequence is not used."""
        meter = self._meter
        if meter is None:
            raise ControllerFault("ledger: it was opened for no meter, so it accepts nothing")
        self._check_clock()

        def job(db: Session) -> str | None:
            db.lock(_attempt_lock(request.attempt_id))
            known = db.rows("SELECT opening, closed FROM attempts WHERE attempt_id = ?", (request.attempt_id,))
            if not known:
                raise InvalidInput(f"ledger: attempt {request.attempt_id} was never opened")
            opening = AttemptOpening.model_validate_json(known[0][0])
            if known[0][1]:
                return ATTEMPT_CLOSED
            if opening.expires_at <= request.accepted_at:
                return ATTEMPT_EXPIRED
            db.lock(f"run/{opening.logical_run_id}")
            spent = _spend_rows(db, opening.logical_run_id)
            reached = limit_reached(spent, opening.limits, attempt_id=opening.attempt_id, counts=request.counts)
            if reached is not None:
                return reached
            own = sum(entry.attempt_id == opening.attempt_id for entry in spent)
            _insert(db, request, opening, sequence=own + 1, estimate_usd=estimate_usd, meter=meter)
            return None

        return self._store.write(job)

    def mark_sent(self, request_id: RequestId) -> None:
        """See Ledger. Raises ControllerFault when the request is not newly accepted."""
        query = "UPDATE requests SET state = 'sent' WHERE request_id = ? AND state = 'accepted'"

        def job(db: Session) -> None:
            if db.change(query, (request_id,)) != 1:
                raise ControllerFault(f"ledger: request {request_id} can't be marked as sent")

        self._store.write(job)

    def finish(self, request_id: RequestId, end: RequestEnd) -> None:
        """See Ledger. Raises ControllerFault for a second ending, or a provider message settled before."""
        if end.state.is_open:
            raise ControllerFault(f"ledger: {end.state} is not a final state")

        def job(db: Session) -> None:
            try:
                ended = db.change(_FINISH, (*_end_values(end), request_id))
            except Conflict as error:
                raise ControllerFault(
                    f"ledger: request {request_id} can't end at {end.ended_at} with provider message"
                    f" {end.provider_message_id}: {error}"
                ) from None
            if ended != 1:
                raise ControllerFault(f"ledger: request {request_id} is not open, so it can't be ended again")

        self._store.write(job)

    def refuse(self, refusal: Refusal) -> None:
        """See Ledger."""
        values = (refusal.attempt_id, refusal.at, storable(refusal.reason), refusal.status, int(refusal.limit))
        query = "INSERT INTO refusals (attempt_id, at, reason, status, is_limit) VALUES (?, ?, ?, ?, ?)"
        self._store.write(lambda db: db.change(query, values))

    def account(self, attempt_id: AttemptId) -> AttemptAccount:
        """See Ledger."""

        def job(db: Session) -> AttemptAccount:
            opened = db.rows("SELECT closed FROM attempts WHERE attempt_id = ?", (attempt_id,))
            return AttemptAccount(
                attempt_id=attempt_id,
                requests=tuple(_request(row) for row in db.rows(_REQUESTS_OF_ATTEMPT, (attempt_id,))),
                refusals=tuple(_refusal(row) for row in db.rows(_REFUSALS_OF_ATTEMPT, (attempt_id,))),
                open=bool(opened) and not opened[0][0],
            )

        return self._store.read(job)

    def recover(self, *, at: InstantMs) -> int:
        """See Ledger."""
        own = self._meter.key if self._meter else None

        def job(db: Session) -> int:
            newest = db.rows("SELECT max(accepted_at) FROM requests")[0][0] or 0
            if newest - at > CLOCK_JUMP_SECONDS_MAX * 1000:
                behind = (newest - at) // 1000
                raise LedgerUnavailable(f"the clock is {behind} seconds behind the newest request", remedy=CLOCK)
            meters = db.rows("SELECT DISTINCT meter FROM requests WHERE state IN ('accepted', 'sent') ORDER BY meter")
            gone = [meter for (meter,) in meters if meter != own and db.is_gone(meter)]
            for meter in gone:
                db.change(_NEVER_SENT, (at, at, meter))
            return sum(db.change(_UNKNOWN, (at, at, meter)) for meter in gone)

        return self._store.write(job)


_COLUMNS: Final = (
    "request_id, attempt_id, logical_run_id, sequence, dialect, model, state, accepted_at, ended_at, status,"
    " body_digest, provider_message_id, observed_model, usage, usd, zero_bill_proof, note, counts,"
    " served_tier, served_speed, served_geo"
)
_REQUESTS_OF_ATTEMPT: Final = f"SELECT {_COLUMNS} FROM requests WHERE attempt_id = ? ORDER BY sequence"  # noqa: S608
_REFUSALS_OF_ATTEMPT: Final = (
    "SELECT attempt_id, at, reason, status, is_limit FROM refusals WHERE attempt_id = ? ORDER BY position"
)
_FINISH: Final = (
    "UPDATE requests SET state = ?, ended_at = ?, status = ?, provider_message_id = ?, observed_model = ?,"
    " served_tier = ?, served_speed = ?, served_geo = ?, usage = ?, usd = ?, zero_bill_proof = ?, raw_usage = ?,"
    " note = trim(note || ' ' || ?) WHERE request_id = ? AND state IN ('accepted', 'sent')"
)
# The recovering meter's clock may be behind the one that accepted.
_NEVER_SENT: Final = (
    "UPDATE requests SET state = 'zero_bill', zero_bill_proof = 'never_sent', usd = '0',"
    " ended_at = CASE WHEN accepted_at > ? THEN accepted_at ELSE ? END,"
    " note = trim(note || ' the meter stopped before it sent anything') WHERE state = 'accepted' AND meter = ?"
)
_UNKNOWN: Final = (
    "UPDATE requests SET state = 'unknown', ended_at = CASE WHEN accepted_at > ? THEN accepted_at ELSE ? END,"
    " note = trim(note || ' the meter stopped before the answer was final') WHERE state = 'sent' AND meter = ?"
)


def _attempt_lock(attempt_id: AttemptId) -> str:
    return f"attempt/{attempt_id}"


def _spend_rows(db: Session, run: LogicalRunId) -> list[SpendRow]:
    query = "SELECT attempt_id, counts, state, usd, estimate_usd FROM requests WHERE logical_run_id = ?"
    return [
        SpendRow(
            attempt_id=AttemptId(row[0]),
            counts=bool(row[1]),
            state=RequestState(row[2]),
            usd=row[3],
            estimate_usd=row[4],
        )
        for row in db.rows(query, (run,))
    ]


def _insert(
    db: Session,
    request: MeteredRequest,
    opening: AttemptOpening,
    *,
    sequence: int,
    estimate_usd: UsdText,
    meter: MeterLife,
) -> None:
    values = (
        request.request_id,
        opening.attempt_id,
        opening.logical_run_id,
        sequence,
        int(request.counts),
        opening.provider,
        request.dialect,
        request.model,
        request.accepted_at,
        request.body_digest,
        storable(request.note),
        estimate_usd,
        meter.key,
    )
    try:
        db.change(
            "INSERT INTO requests (request_id, attempt_id, logical_run_id, sequence, counts, provider, dialect, model,"
            " state, accepted_at, body_digest, note, estimate_usd, meter)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?, ?, ?, ?, ?)",
            values,
        )
    except Conflict as error:
        raise ControllerFault(f"ledger: request {request.request_id} was accepted before: {error}") from None


def _end_values(end: RequestEnd) -> tuple[Any, ...]:
    return (
        end.state.value,
        end.ended_at,
        end.status,
        _text(end.provider_message_id),
        _text(end.observed_model),
        _text(end.served_tier),
        _text(end.served_speed),
        _text(end.served_geo),
        end.usage.model_dump_json() if end.usage else None,
        end.usd,
        end.zero_bill_proof.value if end.zero_bill_proof else None,
        storable(end.raw_usage_json),
        storable(end.note),
    )


def _text(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _request(row: tuple[Any, ...]) -> MeteredRequest:
    return MeteredRequest(
        request_id=RequestId(row[0]),
        attempt_id=AttemptId(row[1]),
        logical_run_id=LogicalRunId(row[2]),
        sequence=row[3],
        dialect=row[4],
        model=row[5],
        state=RequestState(row[6]),
        accepted_at=InstantMs(row[7]),
        ended_at=None if row[8] is None else InstantMs(row[8]),
        status=row[9],
        body_digest=row[10],
        provider_message_id=row[11],
        observed_model=row[12],
        usage=None if row[13] is None else Usage.model_validate_json(row[13]),
        usd=row[14],
        zero_bill_proof=None if row[15] is None else ZeroBillProof(row[15]),
        note=row[16],
        counts=bool(row[17]),
        served_tier=row[18],
        served_speed=row[19],
        served_geo=row[20],
    )


def _refusal(row: tuple[Any, ...]) -> Refusal:
    return Refusal(
        attempt_id=None if row[0] is None else AttemptId(row[0]),
        at=InstantMs(row[1]),
        reason=row[2],
        status=row[3],
        limit=bool(row[4]),
    )
