"""One SQLite file, one writer thread, group commit: durable when a call returns.

Several processes may hold the same file open; `BEGIN IMMEDIATE` keeps their transactions apart.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.errors import FairtrialError, LedgerUnavailable

T = TypeVar("T")
BATCH_MAX: Final = 64  # past this a larger batch saves nothing measurable per row
BUSY_MS: Final = 10_000
FULL: Final = 2  # PRAGMA synchronous: fsync on every commit, in WAL mode too
DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
RESTORE: Final = (
    "It is evidence and is not mended by hand: put the original back, with the `-wal` file beside it, or publish the"
    " round as incomplete."
)
_OBJECTS: Final = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"


class SqliteWriter:
    """Runs jobs inside durable transactions, many jobs to one fsync.

    Any error of the file itself poisons the writer: every later call raises LedgerUnavailable, since after a failed
    fsync nothing that was written may be believed.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[tuple[Callable[[sqlite3.Connection], Any], Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._fault: str | None = None
        self._read_lock = threading.Lock()
        try:
            # SQLite would create the file readable by everyone under a common umask.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._write = self._opened(schema)
            self._read = self._opened("")
        except (OSError, sqlite3.Error) as error:
            is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED
            raise LedgerUnavailable(f"{path}: {error}", remedy=RESTORE if is_damaged else None) from error
        self._thread = threading.Thread(target=self._serve, name=f"writer-{path.name}", daemon=True)
        self._thread.start()

    def _opened(self, schema: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute(f"PRAGMA synchronous={FULL}")
        connection.execute("PRAGMA foreign_keys=ON")
        synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
        if (mode, synchronous) != ("wal", FULL):
            raise LedgerUnavailable(f"{self._path}: asked for WAL and FULL, got {mode} and {synchronous}")
        if schema:
            # Only into an empty file: what is missing from another was removed, and that must show.
            if not connection.execute(_OBJECTS).fetchall():
                connection.executescript(f"BEGIN IMMEDIATE;{schema};COMMIT;")
            if (state := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
                raise LedgerUnavailable(f"{self._path}: the file is damaged: {state}", remedy=RESTORE)
            self._check_schema(connection, schema)
        return connection

    def _check_schema(self, connection: sqlite3.Connection, schema: str) -> None:
        """Another version's tables, or a trigger that somebody dropped, would break our promises in silence."""
        with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
            fresh.executescript(schema)
            different = set(fresh.execute(_OBJECTS)) ^ set(connection.execute(_OBJECTS))
        if different:
            names = ", ".join(sorted({name for name, _ in different}))
            raise LedgerUnavailable(
                f"{self._path}: its tables are not those of this version: {names}",
                remedy="Open it with the version of fairtrial that made it, and leave its tables and triggers alone.",
            )

    def write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run the job in a transaction and return its result once that is fsynced.

        A FairtrialError of the job undoes that job alone. Raises LedgerUnavailable for any error of the file.
        """
        future: Future[T] = Future()
        if self._fault is not None:
            raise LedgerUnavailable(f"{self._path}: {self._fault}")
        self._queue.put((job, future))
        return future.result()

    def read(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read-only job on one state, the last that was committed."""
        if self._fault is not None:
            raise LedgerUnavailable(f"{self._path}: {self._fault}")
        try:
            with self._read_lock:
                self._read.execute("BEGIN")
                try:
                    return job(self._read)
                finally:
                    self._read.execute("COMMIT")
        except sqlite3.Error as error:
            self._fault = str(error)
            raise LedgerUnavailable(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Finish what is queued and close the file. Idempotent."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
            self._write.close()
            self._read.close()
            self._fault = self._fault or "closed"

    def _serve(self) -> None:
        ending = False
        while not ending:
            batch: list[tuple[Callable[[sqlite3.Connection], Any], Future[Any]]] = []
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                if len(batch) >= BATCH_MAX:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            ending = item is None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[tuple[Callable[[sqlite3.Connection], Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            if self._fault is not None:
                raise sqlite3.OperationalError(self._fault)
            self._write.execute("BEGIN IMMEDIATE")
            for job, future in batch:
                self._write.execute("SAVEPOINT job")
                try:
                    outcomes.append((future, job(self._write), None))
                except FairtrialError as error:
                    self._write.execute("ROLLBACK TO job")
                    outcomes.append((future, None, error))
                self._write.execute("RELEASE job")
            self._write.execute("COMMIT")
        except BaseException as error:
            # Whatever went wrong, no result of this batch is durable, so none may be reported as such.
            self._fault = str(error)
            if self._write.in_transaction:
                try:
                    self._write.execute("ROLLBACK")
                except sqlite3.Error as second:
                    self._fault = f"{error}; then {second}"
            for _, future in batch:
                future.set_exception(LedgerUnavailable(f"{self._path}: {self._fault}"))
            return
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
