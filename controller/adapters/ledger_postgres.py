"""The ledger as one schema of a PostgreSQL database, for several meters that share ceilings.

A transaction locks the attempt and the logical run that it decides about, so ceilings hold as exactly as in one file.
Every session of a meter holds a shared lock on the name of its life, from its first statement to its end, and a meter
never opens a session anew. So whoever gets that lock for itself knows that nothing of that life can commit any more.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import psycopg

from controller.adapters.ledger_sql import SqlLedger, tables
from controller.adapters.postgres_sessions import PostgresSessions
from controller.errors import InvalidInput, LedgerUnavailable
from controller.ports.clock import Clock
from controller.ports.ledger import MeterLife

SCHEMA_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_TRIGGERS: Final = {
    "requests_stay": ("BEFORE DELETE ON requests FOR EACH ROW", "requests are never deleted"),
    "requests_end_once": (
        "BEFORE UPDATE ON requests FOR EACH ROW WHEN (OLD.state NOT IN ('accepted', 'sent'))",
        "a final request never changes",
    ),
    "requests_whole": ("BEFORE TRUNCATE ON requests FOR EACH STATEMENT", "requests are never deleted"),
    "refusals_stay": ("BEFORE DELETE ON refusals FOR EACH ROW", "refusals are never deleted"),
    "refusals_keep": ("BEFORE UPDATE ON refusals FOR EACH ROW", "a refusal never changes"),
    "refusals_whole": ("BEFORE TRUNCATE ON refusals FOR EACH STATEMENT", "refusals are never deleted"),
}
_GUARDS: Final = "".join(
    f"CREATE TRIGGER {name} {event} EXECUTE FUNCTION append_only('{text}');\n"
    for name, (event, text) in _TRIGGERS.items()
)
SCHEMA: Final = f"""{tables(number="BIGINT", position="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", options="")}
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END$$;
{_GUARDS}"""
VERSION: Final = hashlib.sha256(SCHEMA.encode()).hexdigest()
# Which server, which line of its history since a restore or a failover, and which database.
_PLACE: Final = """
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  || '/' || oid FROM pg_database WHERE datname = current_database()
"""
COPY: Final = (
    "Give the meter the original server. If that is lost, publish the round as incomplete: what a restored or promoted"
    " copy lacks can't be known, and a second copy would let every ceiling be spent twice."
)


class PostgresLedger(SqlLedger):
    """The Ledger port over one schema, shared by any number of meters and by the controller."""

    def __init__(self, url: str, clock: Clock, *, schema: str, meter: MeterLife | None = None) -> None:
        """Connect, and create the schema's tables when there are none.

        `url` is libpq's, `postgresql://USER@HOST/DATABASE`; the password comes from a file that PGPASSFILE names, or
        from the environment. Raises InvalidInput for a URL that holds one, and LedgerUnavailable for a server that
        can't be reached, that would not keep what it acknowledges, or that is a copy of the one used before.
        """
        if not SCHEMA_NAME.fullmatch(schema):
            raise InvalidInput(f"ledger schema {schema!r}: must be lower-case letters, digits and underscores")
        sessions = PostgresSessions(url, schema=schema, meter=meter)
        try:
            sessions.prepare(lambda db: _prepared(db, schema, is_meter=meter is not None))
        except BaseException:
            sessions.close()
            raise
        super().__init__(sessions, clock, meter)


def _prepared(db: psycopg.Connection, schema: str, *, is_meter: bool) -> None:
    if db.execute("SELECT to_regclass(%s)", (f"{schema}.identity",)).fetchone() == (None,):
        # A role that may not create schemas can be given one.
        if db.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            db.execute(f"CREATE SCHEMA {schema}")
        db.execute(SCHEMA)
        db.execute("INSERT INTO identity VALUES ('version', %s)", (VERSION,))
    _check_version(db, schema)
    if is_meter:
        _check_original(db)


def _check_version(db: psycopg.Connection, schema: str) -> None:
    version = db.execute("SELECT value FROM identity WHERE name = 'version'").fetchone()
    guards = db.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid IN (%s::regclass, %s::regclass) AND tgenabled IN ('O', 'A')",
        (f"{schema}.requests", f"{schema}.refusals"),
    ).fetchall()
    missing = sorted(set(_TRIGGERS) - {name for (name,) in guards})
    if version != (VERSION,) or missing:
        fault = f"these triggers are missing or disabled: {', '.join(missing)}" if missing else "another version's"
        raise LedgerUnavailable(
            f"ledger schema {schema}: its tables are not those of this version: {fault}",
            remedy="Open it with the version of fairtrial that made it, and leave its tables and triggers alone.",
        )


def _check_original(db: psycopg.Connection) -> None:
    row = db.execute(_PLACE).fetchone()
    place = str(row[0]) if row else ""
    db.execute("INSERT INTO identity VALUES ('place', %s) ON CONFLICT DO NOTHING", (place,))
    if db.execute("SELECT value FROM identity WHERE name = 'place'").fetchone() != (place,):
        raise LedgerUnavailable("ledger: the database is a copy of the one that a meter used before", remedy=COPY)
