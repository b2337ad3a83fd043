"""The journal in SQL: SQLite in WAL mode with every commit fsynced by default, PostgreSQL by URL.

One row per statement. The chain's digest is computed inside the same transaction that inserts the row, under a lock, so
that two threads can't fork the chain; a second process is kept out by the round's lock file.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import ControllerFault, DiskFull
from controller.evidence.canonical import canonical
from controller.evidence.log import next_statement

_METADATA = sa.MetaData()
_STATEMENTS = sa.Table(
    "statements",
    _METADATA,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False, index=True),
    sa.Column("bytes", sa.LargeBinary, nullable=False),
)


def _durable(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=10000")
    # Read back: a build or a file system that ignores the setting would lose acknowledged rows on power loss.
    if cursor.execute("PRAGMA synchronous").fetchone()[0] != 2:
        raise ControllerFault("SQLite did not accept synchronous=FULL for the journal")
    cursor.close()


class SqlJournal:
    """The Journal port over SQLAlchemy."""

    def __init__(self, url: str) -> None:
        """Open or create the journal at a SQLAlchemy URL such as `sqlite:///rounds/demo-1/journal.sqlite`."""
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _durable)
        self._lock = threading.Lock()
        try:
            _METADATA.create_all(self._engine)
        except sa.exc.OperationalError as error:
            raise DiskFull(f"the journal at {url} can't be opened: {error.orig}") from error

    @classmethod
    def in_directory(cls, directory: Path) -> SqlJournal:
        return cls(f"sqlite:///{directory / 'journal.sqlite'}")

    def close(self) -> None:
        self._engine.dispose()

    def append(
        self, kind: StatementKind, subject: str, body: Record, *, at: InstantMs, key: str | None = None
    ) -> Statement:
        unique = key or f"{kind}:{subject}"
        try:
            with self._lock, self._engine.begin() as connection:
                return self._append(connection, kind, subject, body, at=at, key=unique)
        except sa.exc.OperationalError as error:
            raise DiskFull(f"the journal can't be written: {error.orig}") from error

    def _append(
        self,
        connection: sa.Connection,
        kind: StatementKind,
        subject: str,
        body: Record,
        *,
        at: InstantMs,
        key: str,
    ) -> Statement:
        claim = body.model_dump(mode="json")
        present = connection.execute(sa.select(_STATEMENTS.c.bytes).where(_STATEMENTS.c.key == key)).scalar()
        if present is not None:
            first = Statement.model_validate_json(present)
            if first.body != claim:
                raise ControllerFault(f"statement {key} exists with another body; the log is append-only")
            return first
        newest = connection.execute(
            sa.select(_STATEMENTS.c.bytes).order_by(_STATEMENTS.c.sequence.desc()).limit(1)
        ).scalar()
        previous = Statement.model_validate_json(newest) if newest is not None else None
        statement = next_statement(previous, kind=kind, at=at, subject=subject, body=claim)
        connection.execute(
            _STATEMENTS.insert().values(
                sequence=statement.sequence, key=key, kind=kind.value, subject=subject, bytes=canonical(statement)
            )
        )
        return statement

    def statements(self) -> tuple[Statement, ...]:
        return self._select()

    def since(self, sequence: int) -> tuple[Statement, ...]:
        return self._select(_STATEMENTS.c.sequence >= sequence)

    def of(self, subject: str) -> tuple[Statement, ...]:
        return self._select(_STATEMENTS.c.subject == subject)

    def find(self, kind: StatementKind, subject: str) -> Statement | None:
        rows = self._select(_STATEMENTS.c.subject == subject, _STATEMENTS.c.kind == kind.value)
        return rows[-1] if rows else None

    def _select(self, *where: sa.ColumnElement[bool]) -> tuple[Statement, ...]:
        query = sa.select(_STATEMENTS.c.bytes).where(*where).order_by(_STATEMENTS.c.sequence)
        with self._engine.connect() as connection:
            return tuple(Statement.model_validate_json(row) for row in connection.execute(query).scalars())
