"""Which ledger a location names: a path is a SQLite file, a `postgresql://` URL a schema of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from controller.adapters.ledger_sql import SqlLedger
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.errors import InvalidInput
from controller.ports.clock import Clock
from controller.ports.ledger import MeterLife

SCHEMES: Final = ("postgresql://", "postgres://")


def open_ledger(location: str, clock: Clock, *, schema: str, meter: MeterLife | None = None) -> SqlLedger:
    """Open the ledger for a meter that accepts, or without one to open attempts and read.

    `schema` is used by PostgreSQL alone. Raises LedgerUnavailable, InvalidInput or PortOccupied; see the two ledgers.
    """
    if location.startswith(SCHEMES):
        # Only who uses it pays for importing the driver.
        from controller.adapters.ledger_postgres import PostgresLedger

        return PostgresLedger(location, clock, schema=schema, meter=meter)
    return SqliteLedger(Path(location), clock, meter=meter)


def check_url(url: str) -> str:
    """The URL, if it may be written into a configuration file. Raises InvalidInput, which does not repeat it."""
    from controller.adapters.postgres_sessions import parsed_url

    if not url.startswith(SCHEMES):
        raise InvalidInput(
            "the ledger's URL must begin with postgresql://",
            remedy="Write postgresql://USER@HOST/DATABASE, or name no URL to keep each round's ledger in a file.",
        )
    parsed_url(url)
    return url
