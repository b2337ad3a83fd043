"""The ledger as one SQLite file: one meter accepts into it, one controller opens attempts and reads."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.adapters.ledger_sql import Conflict, Session, SqlLedger, tables
from controller.adapters.sqlite_writer import SqliteWriter
from controller.errors import LedgerUnavailable, PortOccupied
from controller.ports.clock import Clock
from controller.ports.ledger import MeterLife

T = TypeVar("T")
_TABLES: Final = tables(number="INTEGER", position="INTEGER PRIMARY KEY AUTOINCREMENT", options=" STRICT")
SCHEMA: Final = f"""{_TABLES}
CREATE TRIGGER IF NOT EXISTS requests_stay BEFORE DELETE ON requests
  BEGIN SELECT RAISE(ABORT, 'requests are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS requests_end_once BEFORE UPDATE ON requests WHEN OLD.state NOT IN ('accepted', 'sent')
  BEGIN SELECT RAISE(ABORT, 'a final request never changes'); END;
CREATE TRIGGER IF NOT EXISTS refusals_stay BEFORE DELETE ON refusals
  BEGIN SELECT RAISE(ABORT, 'refusals are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS refusals_keep BEFORE UPDATE ON refusals
  BEGIN SELECT RAISE(ABORT, 'a refusal never changes'); END
"""
COPY: Final = (
    "Run the meter on the original file. If that is lost, publish the round as incomplete: what the copy lacks can't be"
    " known, and a second file would let every ceiling be spent twice."
)


class SqliteLedger(SqlLedger):
    """The Ledger port over one file."""

    def __init__(self, path: Path, clock: Clock, *, meter: MeterLife | None = None) -> None:
        """Open or create the file; with a `meter`, hold it as the one meter that accepts into it.

        Raises LedgerUnavailable when it can't be written durably, is damaged, or is a copy of the file that the first
        meter used, and PortOccupied when another meter holds it.
        """
        super().__init__(_SqliteStore(path, holds=meter is not None), clock, meter)


class _SqliteStore:
    def __init__(self, path: Path, *, holds: bool) -> None:
        self._holds = holds
        self._held = _hold(path) if holds else None
        try:
            self._file = SqliteWriter(path, SCHEMA)
            if holds:
                self._check_original(path)
        except BaseException:
            self._let_go()
            raise

    def _check_original(self, path: Path) -> None:
        own = str(path.stat().st_ino)

        def job(db: sqlite3.Connection) -> str:
            db.execute("INSERT INTO identity VALUES ('place', ?) ON CONFLICT DO NOTHING", (own,))
            return str(db.execute("SELECT value FROM identity WHERE name = 'place'").fetchone()[0])

        if self._file.write(job) != own:
            self._file.close()
            raise LedgerUnavailable(f"{path}: it is a copy of the ledger that a meter used before", remedy=COPY)

    def write(self, job: Callable[[Session], T]) -> T:
        return self._file.write(lambda db: job(_SqliteSession(db, holds=self._holds)))

    def read(self, job: Callable[[Session], T]) -> T:
        return self._file.read(lambda db: job(_SqliteSession(db, holds=self._holds)))

    def close(self) -> None:
        self._file.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


class _SqliteSession:
    def __init__(self, db: sqlite3.Connection, *, holds: bool) -> None:
        self._db = db
        self._holds = holds

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        try:
            return self._db.execute(query, values).rowcount
        except sqlite3.IntegrityError as error:
            raise Conflict(str(error)) from None

    def lock(self, name: str) -> None:
        """Nothing to do: a writing transaction has the whole file."""

    def is_gone(self, meter: str) -> bool:
        """Whoever holds the file knows that no other meter does."""
        return self._holds


def _hold(path: Path) -> int:
    """Lock the file beside the ledger; the kernel lets go of it when its holder dies."""
    try:
        lock = os.open(f"{path}.meter", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerUnavailable(f"{path}: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise PortOccupied(
            f"{path}: another meter accepts into this ledger",
            remedy="Stop that meter, or give both a ledger in PostgreSQL, which several meters can share.",
        ) from None
    except OSError as error:
        os.close(lock)
        raise LedgerUnavailable(f"{path}: {error}") from error
    return lock
