"""A fixed set of PostgreSQL sessions: one transaction per job, durable when a call returns, poisoned by any error.

The server commits concurrent transactions in one flush by itself, so there is no queue here as there is for a file.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from controller.adapters.ledger_sql import Conflict, Session
from controller.errors import FairtrialError, InvalidInput, LedgerUnavailable
from controller.ports.ledger import MeterLife

T = TypeVar("T")
SESSIONS_OF_METER: Final = 8  # one flush serves all that commit at once; more sessions add nothing on one disk
SESSIONS_OF_READER: Final = 2
FREE_SECONDS_MAX: Final = 30.0
CONNECT_SECONDS_MAX: Final = 10
# What each session asks for, and reads back. A peer that is dead is noticed within half a minute, so that its locks are
# free; one that sleeps inside a transaction loses it before others have waited too long for it.
SETTINGS: Final = {
    "synchronous_commit": "on",
    "lock_timeout": "10s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "5s",
}
SERVER_KEEPALIVE: Final = {"tcp_keepalives_idle": 15, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
KEEPALIVE: Final = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds
}
# Without these the server acknowledges what a power cut takes back, whatever a session asks for.
REQUIRED: Final = {"fsync": "on", "full_page_writes": "on", "transaction_read_only": "off"}
SECRETS: Final = ("password", "sslpassword")
REACHABLE: Final = (
    "Look after the PostgreSQL server and the way to it; the meter admits nothing until it is started again."
)
BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"  # each statement sees what a lock waited for
BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresSessions:
    """The Store of a PostgreSQL ledger.

    A session that fails is never opened again: what became of its transaction is not known, so the whole store is
    poisoned and its process has to start anew.
    """

    def __init__(self, url: str, *, schema: str, meter: MeterLife | None) -> None:
        self._schema = schema
        self._meter = meter
        self._fault: str | None = None
        self._free: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()
        self._all: list[psycopg.Connection] = []
        given = parsed_url(url)
        self._where = f"postgresql://{given.get('host', '')}/{given.get('dbname', '')}"
        try:
            for _ in range(SESSIONS_OF_METER if meter else SESSIONS_OF_READER):
                self._all.append(self._opened(url, str(given.get("options") or "")))
        except psycopg.Error as error:
            self.close()
            raise LedgerUnavailable(f"{self._where}: {_words(error)}", remedy=REACHABLE) from None
        except FairtrialError:
            self.close()
            raise
        for connection in self._all:
            self._free.put(connection)

    def _opened(self, url: str, options: str) -> psycopg.Connection:
        asked = SETTINGS | SERVER_KEEPALIVE | {"search_path": self._schema}
        connection = psycopg.connect(
            make_conninfo(
                url,
                options=" ".join([options, *(f"-c {name}={value}" for name, value in asked.items())]).strip(),
                application_name="fairtrial",
                connect_timeout=CONNECT_SECONDS_MAX,
                **KEEPALIVE,
            ),
            autocommit=True,
        )
        try:
            for name, value in (SETTINGS | REQUIRED).items():
                found = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
                if found != (value,):
                    raise LedgerUnavailable(
                        f"{self._where}: {name} must be {value}, and the server has {found and found[0]}",
                        remedy="Change the server's configuration: it must keep every commit that it acknowledges.",
                    )
            if self._meter is not None:
                connection.execute("SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))", (self._life(),))
        except BaseException:
            connection.close()
            raise
        # A server that gives up waiting for its standby acknowledges the commit all the same, with a warning.
        connection.add_notice_handler(self._noticed)
        return connection

    def _life(self, key: str | None = None) -> str:
        return f"{self._schema}/meter/{key or (self._meter.key if self._meter else '')}"

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._fault = self._fault or f"the server warned: {notice.message_primary}"

    def prepare(self, job: Callable[[psycopg.Connection], None]) -> None:
        """Run the job that makes or checks the tables; two that start at once take turns."""

        def alone(connection: psycopg.Connection) -> None:
            _lock(connection, f"{self._schema}/tables")
            job(connection)

        self._run(BEGIN_WRITE, alone)

    def write(self, job: Callable[[Session], T]) -> T:
        """See Store."""
        return self._run(BEGIN_WRITE, lambda connection: job(_PostgresSession(connection, self._schema, self._meter)))

    def read(self, job: Callable[[Session], T]) -> T:
        """See Store."""
        return self._run(BEGIN_READ, lambda connection: job(_PostgresSession(connection, self._schema, self._meter)))

    def close(self) -> None:
        """See Store. With its last session the meter's life ends."""
        self._fault = self._fault or "closed"
        for connection in self._all:
            connection.close()

    def _run(self, begin: str, job: Callable[[psycopg.Connection], T]) -> T:
        with self._borrowed() as connection:
            try:
                connection.execute(begin)
                try:
                    result = job(connection)
                except FairtrialError:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            except FairtrialError:
                raise
            except BaseException as error:
                # What a lost or refused transaction did is not known, and no later one may be believed.
                self._fault = self._fault or _words(error)
            self._check()
        return result

    @contextmanager
    def _borrowed(self) -> Iterator[psycopg.Connection]:
        self._check()
        try:
            connection = self._free.get(timeout=FREE_SECONDS_MAX)
        except queue.Empty:
            self._fault = f"no session was free for {FREE_SECONDS_MAX:.0f} seconds"
            self._check()
            raise
        try:
            self._check()
            yield connection
        finally:
            self._free.put(connection)

    def _check(self) -> None:
        if self._fault is not None:
            raise LedgerUnavailable(f"{self._where}: {self._fault}", remedy=REACHABLE)


class _PostgresSession:
    def __init__(self, connection: psycopg.Connection, schema: str, meter: MeterLife | None) -> None:
        self._connection = connection
        self._schema = schema
        self._meter = meter

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.replace("?", "%s").encode(), values).fetchall()

    def change(self, query: str, values: Sequence[Any] = ()) -> int:
        try:
            return self._connection.execute(query.replace("?", "%s").encode(), values).rowcount
        except psycopg.IntegrityError as error:
            raise Conflict(_words(error)) from None

    def lock(self, name: str) -> None:
        _lock(self._connection, f"{self._schema}/{name}")

    def is_gone(self, meter: str) -> bool:
        name = f"{self._schema}/meter/{meter}"
        if self._meter is not None and meter.rpartition("#")[0] == self._meter.place:
            # Nobody else serves at our place, so its sessions end as soon as the server notices.
            _lock(self._connection, name)
            return True
        found = self._connection.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", (name,))
        return found.fetchone() == (True,)


def _lock(connection: psycopg.Connection, name: str) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))


def parsed_url(url: str) -> dict[str, Any]:
    """The parts of a URL in libpq's words. Raises InvalidInput, which never repeats what may hold a password."""
    remedy = "Write postgresql://USER@HOST/DATABASE, and put the password into the file that PGPASSFILE names."
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise InvalidInput("the ledger's URL can't be read", remedy=remedy) from None
    for name in SECRETS:
        if given.get(name):
            raise InvalidInput(f"the ledger's URL holds a {name}", remedy=remedy)
    return given


def _words(error: BaseException) -> str:
    """The first line of a message; further lines quote statements and values."""
    return (str(error) or type(error).__name__).splitlines()[0]
