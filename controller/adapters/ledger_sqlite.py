"""The ledger as one SQLite file: rows are inserted, ended once, and never removed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, Final

from controller.adapters.sqlite_writer import SqliteWriter
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.money import UsdText
from controller.domain.spend import ATTEMPT_CLOSED, ATTEMPT_EXPIRED, SpendRow, limit_reached
from controller.domain.usage import AttemptAccount, MeteredRequest, Refusal, RequestState, Usage, ZeroBillProof
from controller.errors import ControllerFault, InvalidInput
from controller.ports.clock import Clock
from controller.ports.ledger import AttemptOpening, RequestEnd

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS attempts (
  attempt_id TEXT PRIMARY KEY, logical_run_id TEXT NOT NULL, token_sha256 TEXT NOT NULL UNIQUE,
  opening TEXT NOT NULL, expires_at INTEGER NOT NULL, closed INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE IF NOT EXISTS requests (
  position INTEGER PRIMARY KEY AUTOINCREMENT, request_id TEXT NOT NULL UNIQUE,
  attempt_id TEXT NOT NULL REFERENCES attempts, logical_run_id TEXT NOT NULL, sequence INTEGER NOT NULL,
  counts INTEGER NOT NULL, provider TEXT NOT NULL, dialect TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL,
  accepted_at INTEGER NOT NULL, ended_at INTEGER, status INTEGER, body_digest TEXT NOT NULL, provider_message_id TEXT,
  observed_model TEXT, served_tier TEXT, served_speed TEXT, served_geo TEXT, usage TEXT, usd TEXT,
  zero_bill_proof TEXT, raw_usage TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL, estimate_usd TEXT NOT NULL, UNIQUE (attempt_id, sequence)) STRICT;
CREATE INDEX IF NOT EXISTS requests_of_run ON requests (logical_run_id);
CREATE UNIQUE INDEX IF NOT EXISTS settled_once ON requests (provider, provider_message_id) WHERE state = 'settled';
CREATE TABLE IF NOT EXISTS refusals (
  position INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT, at INTEGER NOT NULL, reason TEXT NOT NULL,
  status INTEGER NOT NULL, is_limit INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS refusals_of_attempt ON refusals (attempt_id);
CREATE TRIGGER IF NOT EXISTS requests_stay BEFORE DELETE ON requests
  BEGIN SELECT RAISE(ABORT, 'requests are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS requests_end_once BEFORE UPDATE ON requests WHEN OLD.state NOT IN ('accepted', 'sent')
  BEGIN SELECT RAISE(ABORT, 'a final request never changes'); END;
CREATE TRIGGER IF NOT EXISTS refusals_stay BEFORE DELETE ON refusals
  BEGIN SELECT RAISE(ABORT, 'refusals are never deleted'); END
"""
OPEN_STATES: Final = (RequestState.ACCEPTED, RequestState.SENT)


class SqliteLedger:
    """The Ledger port over one file, shared by the meter (which accepts) and the controller (which opens and reads)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Open or create the file. Raises LedgerUnavailable when it can't be written durably."""
        self._clock = clock
        self._file = SqliteWriter(path, SCHEMA)

    def close(self) -> None:
        """Finish queued writes and close the file."""
        self._file.close()

    def open_attempt(self, opening: AttemptOpening) -> None:
        """See Ledger. Raises InvalidInput for a different opening under a known id, or a token already in use."""
        text = opening.model_dump_json()

        def job(db: sqlite3.Connection) -> None:
            row = db.execute(
                "SELECT opening, closed, EXISTS (SELECT 1 FROM requests r WHERE r.attempt_id = a.attempt_id)"
                " FROM attempts a WHERE attempt_id = ?",
                (opening.attempt_id,),
            ).fetchone()
            if row is not None and row[0] == text:
                return
            if row is not None and (not row[1] or row[2]):
                raise InvalidInput(
                    f"ledger: attempt {opening.attempt_id} is already open with other terms, or was used"
                )
            try:
                # An attempt that was closed before it made any request may begin again under a new token.
                db.execute("DELETE FROM attempts WHERE attempt_id = ?", (opening.attempt_id,))
                db.execute(
                    "INSERT INTO attempts (attempt_id, logical_run_id, token_sha256, opening, expires_at)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (opening.attempt_id, opening.logical_run_id, opening.token_sha256, text, opening.expires_at),
                )
            except sqlite3.IntegrityError:
                raise InvalidInput(
                    f"ledger: the token of attempt {opening.attempt_id} belongs to another attempt"
                ) from None

        self._file.write(job)

    def close_attempt(self, attempt_id: AttemptId) -> None:
        """See Ledger. Closing an unknown or closed attempt does nothing."""
        self._file.write(lambda db: db.execute("UPDATE attempts SET closed = 1 WHERE attempt_id = ?", (attempt_id,)))

    def find_by_token(self, token_sha256: str) -> AttemptOpening | None:
        """See Ledger."""
        query = "SELECT opening FROM attempts WHERE token_sha256 = ? AND closed = 0 AND expires_at > ?"
        row = self._file.read(lambda db: db.execute(query, (token_sha256, self._clock.now())).fetchone())
        return None if row is None else AttemptOpening.model_validate_json(row[0])

    def accept(self, request: MeteredRequest, *, estimate_usd: UsdText) -> str | None:
        """See Ledger. The ledger numbers the requests of an attempt itself; the given sequence is not used."""

        def job(db: sqlite3.Connection) -> str | None:
            row = db.execute(
                "SELECT opening, closed FROM attempts WHERE attempt_id = ?", (request.attempt_id,)
            ).fetchone()
            if row is None:
                raise InvalidInput(f"ledger: attempt {request.attempt_id} was never opened")
            opening = AttemptOpening.model_validate_json(row[0])
            if row[1]:
                return ATTEMPT_CLOSED
            if opening.expires_at <= request.accepted_at:
                return ATTEMPT_EXPIRED
            spent = _spend_rows(db, opening.logical_run_id)
            reached = limit_reached(spent, opening.limits, attempt_id=opening.attempt_id, counts=request.counts)
            if reached is not None:
                return reached
            own = sum(entry.attempt_id == opening.attempt_id for entry in spent)
            _insert(db, request, opening, sequence=own + 1, estimate_usd=estimate_usd)
            return None

        return self._file.write(job)

    def mark_sent(self, request_id: RequestId) -> None:
        """See Ledger. Raises ControllerFault when the request is not newly accepted."""

        def job(db: sqlite3.Connection) -> None:
            cursor = db.execute(
                "UPDATE requests SET state = 'sent' WHERE request_id = ? AND state = 'accepted'", (request_id,)
            )
            if cursor.rowcount != 1:
                raise ControllerFault(f"ledger: request {request_id} can't be marked as sent")

        self._file.write(job)

    def finish(self, request_id: RequestId, end: RequestEnd) -> None:
        """See Ledger. Raises ControllerFault for a second ending, or a provider message settled before."""
        if end.state in OPEN_STATES:
            raise ControllerFault(f"ledger: {end.state} is not a final state")

        def job(db: sqlite3.Connection) -> None:
            try:
                cursor = db.execute(
                    "UPDATE requests SET state = ?, ended_at = ?, status = ?, provider_message_id = ?,"
                    " observed_model = ?, served_tier = ?, served_speed = ?, served_geo = ?, usage = ?,"
                    " usd = ?, zero_bill_proof = ?, raw_usage = ?,"
                    " note = trim(note || ' ' || ?) WHERE request_id = ? AND state IN ('accepted', 'sent')",
                    (
                        end.state,
                        end.ended_at,
                        end.status,
                        end.provider_message_id,
                        end.observed_model,
                        end.served_tier,
                        end.served_speed,
                        end.served_geo,
                        end.usage.model_dump_json() if end.usage else None,
                        end.usd,
                        end.zero_bill_proof,
                        end.raw_usage_json,
                        end.note,
                        request_id,
                    ),
                )
            except sqlite3.IntegrityError as error:
                raise ControllerFault(
                    f"ledger: provider message {end.provider_message_id} was settled before: {error}"
                ) from None
            if cursor.rowcount != 1:
                raise ControllerFault(f"ledger: request {request_id} is not open, so it can't be ended again")

        self._file.write(job)

    def refuse(self, refusal: Refusal) -> None:
        """See Ledger."""
        values = (refusal.attempt_id, refusal.at, refusal.reason, refusal.status, int(refusal.limit))
        query = "INSERT INTO refusals (attempt_id, at, reason, status, is_limit) VALUES (?, ?, ?, ?, ?)"
        self._file.write(lambda db: db.execute(query, values))

    def account(self, attempt_id: AttemptId) -> AttemptAccount:
        """See Ledger."""

        def job(db: sqlite3.Connection) -> AttemptAccount:
            db.execute("BEGIN")
            try:
                opened = db.execute("SELECT closed FROM attempts WHERE attempt_id = ?", (attempt_id,)).fetchone()
                rows = db.execute(
                    f"SELECT {_COLUMNS} FROM requests WHERE attempt_id = ? ORDER BY sequence",  # noqa: S608
                    (attempt_id,),
                ).fetchall()
                refusals = db.execute(
                    "SELECT attempt_id, at, reason, status, is_limit FROM refusals WHERE attempt_id = ?"
                    " ORDER BY position",
                    (attempt_id,),
                ).fetchall()
            finally:
                db.execute("COMMIT")
            return AttemptAccount(
                attempt_id=attempt_id,
                requests=tuple(_request(row) for row in rows),
                refusals=tuple(_refusal(row) for row in refusals),
                open=opened is not None and not opened[0],
            )

        return self._file.read(job)

    def recover(self, *, at: InstantMs) -> int:
        """See Ledger."""

        def job(db: sqlite3.Connection) -> int:
            db.execute(
                "UPDATE requests SET state = 'zero_bill', zero_bill_proof = 'never_sent', usd = '0',"
                " ended_at = max(accepted_at, ?), note = trim(note || ' the meter stopped before it sent anything')"
                " WHERE state = 'accepted'",
                (at,),
            )
            return db.execute(
                "UPDATE requests SET state = 'unknown', ended_at = max(accepted_at, ?),"
                " note = trim(note || ' the meter stopped before the answer was final') WHERE state = 'sent'",
                (at,),
            ).rowcount

        return self._file.write(job)


_COLUMNS: Final = (
    "request_id, attempt_id, logical_run_id, sequence, dialect, model, state, accepted_at, ended_at, status,"
    " body_digest, provider_message_id, observed_model, usage, usd, zero_bill_proof, note, counts,"
    " served_tier, served_speed, served_geo"
)


def _spend_rows(db: sqlite3.Connection, run: LogicalRunId) -> list[SpendRow]:
    query = "SELECT attempt_id, counts, state, usd, estimate_usd FROM requests WHERE logical_run_id = ?"
    return [
        SpendRow(
            attempt_id=AttemptId(row[0]),
            counts=bool(row[1]),
            state=RequestState(row[2]),
            usd=row[3],
            estimate_usd=row[4],
        )
        for row in db.execute(query, (run,))
    ]


def _insert(
    db: sqlite3.Connection, request: MeteredRequest, opening: AttemptOpening, *, sequence: int, estimate_usd: UsdText
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
        request.note,
        estimate_usd,
    )
    try:
        db.execute(
            "INSERT INTO requests (request_id, attempt_id, logical_run_id, sequence, counts, provider, dialect, model,"
            " state, accepted_at, body_digest, note, estimate_usd)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?, ?, ?, ?)",
            values,
        )
    except sqlite3.IntegrityError as error:
        raise ControllerFault(f"ledger: request {request.request_id} was accepted before: {error}") from None


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
        usage=None if row[13] is None else Usage(**json.loads(row[13])),
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
