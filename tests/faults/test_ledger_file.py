"""The ledger as a file: what it survives, what it forbids, and which files it refuses."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controller.adapters.ledger_sqlite import SqliteLedger
from controller.domain.ids import AttemptId
from controller.errors import LedgerUnavailable, PortOccupied
from controller.ports.ledger import MeterLife
from tests.contract.test_ledger import request_row, settle
from tests.world.clock import SetClock
from tests.world.ledger import METER
from tests.world.processes import opening

CLOCK = SetClock()
OTHER = MeterLife(place="there", life="1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in which one request was settled."""
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path, CLOCK, meter=METER)
    ledger.open_attempt(opening())
    settle(ledger, 1)
    ledger.close()
    return path


def test_the_file_is_durable_private_and_append_only(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as outside:
        outside.execute("INSERT INTO refusals (at, reason, status, is_limit) VALUES (1, 'r', 400, 0)")
        for statement in (
            "DELETE FROM requests",
            "UPDATE requests SET usd = '0'",
            "DELETE FROM refusals",
            "UPDATE refusals SET reason = 'other'",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                outside.execute(statement)
    again = SqliteLedger(path, CLOCK)
    assert again.account(AttemptId("att-1")).requests[0].usd == "0.5"
    again.close()


def test_many_writers_lose_nothing_and_a_reader_agrees(path: Path) -> None:
    meter, reader = SqliteLedger(path, CLOCK, meter=METER), SqliteLedger(path, CLOCK)
    reader.open_attempt(opening(2))
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda n: meter.accept(request_row(n, attempt=2), estimate_usd="0"), range(2, 82)))
    assert outcomes.count(None) == 60 and outcomes.count("requests_per_attempt") == 20
    rows = reader.account(AttemptId("att-2")).requests
    assert [row.sequence for row in rows] == list(range(1, 61))
    meter.close()
    reader.close()


def test_two_meters_cannot_share_a_file(path: Path) -> None:
    first = SqliteLedger(path, CLOCK, meter=METER)
    with pytest.raises(PortOccupied, match="another meter") as refused:
        SqliteLedger(path, CLOCK, meter=OTHER)
    assert "PostgreSQL" in refused.value.remedy
    first.close()
    SqliteLedger(path, CLOCK, meter=OTHER).close()


def test_a_copy_of_the_file_is_refused_to_a_meter_and_shown_to_a_reader(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    with pytest.raises(LedgerUnavailable, match="a copy of the ledger") as refused:
        SqliteLedger(copy, CLOCK, meter=METER)
    assert "original" in refused.value.remedy
    reader = SqliteLedger(copy, CLOCK)
    assert len(reader.account(AttemptId("att-1")).requests) == 1
    reader.close()
    path.rename(tmp_path / "moved.sqlite")  # the original under another name stays the original
    SqliteLedger(tmp_path / "moved.sqlite", CLOCK, meter=METER).close()


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at" * 20)


def _overwritten(path: Path) -> None:
    """Everything after the first page."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def _cut(path: Path) -> None:
    """A page is gone from the end."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)


def _changed(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as outside:
            outside.executescript(statement)

    return change


def _index_that_disagrees(path: Path) -> None:
    """One character of one row, as a bad disk would change it."""
    raw = path.read_bytes()
    assert raw.count(b"req-1") >= 2  # the row, and its index
    path.write_bytes(raw.replace(b"req-1", b"req-7", 1))


@pytest.mark.parametrize(
    "damage",
    [
        _not_a_database,
        _overwritten,
        _cut,
        _index_that_disagrees,
        _changed("DROP TRIGGER requests_end_once; UPDATE requests SET usd = '0'"),
        _changed("ALTER TABLE requests ADD COLUMN more TEXT"),
        _changed("CREATE TABLE other (a)"),
        _changed("DROP TABLE refusals"),
    ],
)
@pytest.mark.parametrize("meter", [METER, None])
def test_a_damaged_or_foreign_file_is_refused_with_what_to_do(
    path: Path, damage: Callable[[Path], None], meter: MeterLife | None
) -> None:
    damage(path)
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match=r"ledger\.sqlite") as refused:
        SqliteLedger(path, CLOCK, meter=meter)
    assert "publish the round as incomplete" in refused.value.remedy or "version" in refused.value.remedy
    assert path.read_bytes() == before  # evidence, even when it is damaged


def test_a_place_that_takes_no_file_is_refused(tmp_path: Path) -> None:
    for meter in (METER, None):
        with pytest.raises(LedgerUnavailable):
            SqliteLedger(tmp_path / "absent" / "ledger.sqlite", CLOCK, meter=meter)
