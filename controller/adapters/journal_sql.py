"""The journal in SQL: SQLite in WAL mode with every commit fsynced by default, PostgreSQL by URL.

One row per statement, and one row for the running Merkle tree over them all. The chain's digest and the tree are
computed inside the transaction that inserts the statement. It holds the database from its beginning on, so that neither
another thread nor another process (`stop`, `authorize` and `dispute` write beside a conductor) can fork the chain.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from pydantic import ValidationError

from controller.domain.instant import InstantMs
from controller.domain.record import Record, field_faults
from controller.domain.statement import Statement, StatementKind
from controller.errors import ControllerFault, DiskFull, FairtrialError, InvalidInput, NotCanonical
from controller.evidence.canonical import canonical
from controller.evidence.log import next_statement
from controller.evidence.merkle import RunningTree

RESTORE: Final = "Restore the journal from a copy: it is the round's log, and nothing can be concluded without it."
# Primary result codes of SQLite: https://www.sqlite.org/rescode.html
_DAMAGED: Final = frozenset({1, 11, 26})  # other tables than ours, corrupt, not a database
_NOT_OURS: Final = frozenset({3, 8})  # no permission, read-only

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
# Kept apart from the statements, so that a statement that was altered afterwards no longer fits it.
_TREE = sa.Table(
    "tree",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("peaks", sa.LargeBinary, nullable=False),
)
_THE_TREE: Final = 1  # its only row


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
        """Open or create the journal at a SQLAlchemy URL such as `sqlite:///rounds/demo-1/journal.sqlite`.

        This and every method raise NotCanonical for a damaged journal, InvalidInput for one that isn't ours to write,
        and DiskFull for a place that takes no bytes.
        """
        self._url = url
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _durable)
        self._lock = threading.Lock()
        with self._named_errors():
            _METADATA.create_all(self._engine)

    @classmethod
    def in_directory(cls, directory: Path) -> SqlJournal:
        return cls(f"sqlite:///{directory / 'journal.sqlite'}")

    def close(self) -> None:
        self._engine.dispose()

    def append(
        self, kind: StatementKind, subject: str, body: Record, *, at: InstantMs, key: str | None = None
    ) -> Statement:
        unique = key or f"{kind}:{subject}"
        with self._named_errors(), self._lock, self._engine.begin() as connection:
            if self._engine.dialect.name == "sqlite":
                # Left alone, SQLite begins at the first write, after another process may have read the same end.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            return self._append(connection, kind, subject, body, at=at, key=unique)

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
            first = self._statement(present)
            if first.body != claim:
                raise ControllerFault(f"statement {key} exists with another body; the log is append-only")
            return first
        newest = connection.execute(
            sa.select(_STATEMENTS.c.bytes).order_by(_STATEMENTS.c.sequence.desc()).limit(1)
        ).scalar()
        previous = self._statement(newest) if newest is not None else None
        statement = next_statement(previous, kind=kind, at=at, subject=subject, body=claim)
        tree, spelled = self._tree(connection), canonical(statement)
        if tree.size != statement.sequence:
            raise self._damaged(f"the tree is over {tree.size} statements, and there are {statement.sequence}")
        tree.add(spelled)
        connection.execute(
            _STATEMENTS.insert().values(
                sequence=statement.sequence, key=key, kind=kind.value, subject=subject, bytes=spelled
            )
        )
        write = _TREE.insert() if previous is None else _TREE.update()
        connection.execute(write.values(id=_THE_TREE, size=tree.size, peaks=tree.peaks))
        return statement

    def running_root(self) -> tuple[int, bytes]:
        with self._named_errors(), self._engine.connect() as connection:
            tree = self._tree(connection)
        return tree.size, tree.root

    def _tree(self, connection: sa.Connection) -> RunningTree:
        row = connection.execute(sa.select(_TREE.c.size, _TREE.c.peaks)).first()
        try:
            return RunningTree() if row is None else RunningTree(row.size, row.peaks)
        except (ValueError, TypeError) as error:
            raise self._damaged(f"the tree: {error}") from error

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
        with self._named_errors(), self._engine.connect() as connection:
            return tuple(self._statement(row) for row in connection.execute(query).scalars())

    def _statement(self, row: Any) -> Statement:
        try:
            return Statement.model_validate_json(row)
        except ValidationError as error:
            raise self._damaged(field_faults(error, whole="the row")[0]) from error

    def _damaged(self, fault: str) -> NotCanonical:
        return NotCanonical(f"the journal at {self._url} is damaged: {fault}", remedy=RESTORE)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DatabaseError as error:
            raise _named(self._url, error.orig) from error


def _named(url: str, cause: BaseException | None) -> FairtrialError:
    """The error of ours that a database's own stands for."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return NotCanonical(f"the journal at {url} is damaged: {cause}", remedy=RESTORE)
    if code in _NOT_OURS:
        return InvalidInput(f"the journal at {url}: {cause}", remedy="Make the round's directory yours to write.")
    return DiskFull(f"the journal at {url} can't be used: {cause}")
