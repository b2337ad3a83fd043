"""The journal keeps its promises: append once, chained, durable, refused when the disk is."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.domain.bodies import OperatorAct
from controller.domain.instant import InstantMs
from controller.domain.statement import StatementKind
from controller.errors import ControllerFault, DiskFull, FairtrialError, NotCanonical
from controller.evidence.log import check_chain, leaves
from controller.evidence.merkle import root
from controller.ports.journal import Journal
from tests.world.journal import MemoryJournal

KIND = StatementKind.OPERATOR_ACT


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return SqlJournal.in_directory(tmp_path) if request.param == "sqlite" else MemoryJournal()


def act(note: str) -> OperatorAct:
    return OperatorAct(act="stop", note=note)


def test_statements_come_back_in_order_and_chained(journal: Journal) -> None:
    for number in range(5):
        journal.append(KIND, f"s{number}", act(str(number)), at=InstantMs(number))
    statements = journal.statements()
    assert [s.sequence for s in statements] == [0, 1, 2, 3, 4]
    check_chain(statements)


def test_the_same_statement_twice_is_one_and_another_body_is_refused(journal: Journal) -> None:
    first = journal.append(KIND, "s", act("a"), at=InstantMs(1))
    assert journal.append(KIND, "s", act("a"), at=InstantMs(99)) == first
    with pytest.raises(ControllerFault, match="append-only"):
        journal.append(KIND, "s", act("b"), at=InstantMs(2))
    assert len(journal.statements()) == 1


def test_a_subjects_statements_and_the_newest_of_a_kind(journal: Journal) -> None:
    journal.append(KIND, "s", act("a"), at=InstantMs(1), key="k1")
    journal.append(KIND, "other", act("x"), at=InstantMs(2))
    journal.append(KIND, "s", act("b"), at=InstantMs(3), key="k2")
    assert [s.body["note"] for s in journal.of("s")] == ["a", "b"]
    newest = journal.find(KIND, "s")
    assert newest is not None
    assert newest.body["note"] == "b"
    assert journal.find(StatementKind.VERDICT, "s") is None


def test_a_second_opening_sees_what_the_first_wrote(tmp_path: Path) -> None:
    SqlJournal.in_directory(tmp_path).append(KIND, "s", act("a"), at=InstantMs(1))
    again = SqlJournal.in_directory(tmp_path)
    again.append(KIND, "t", act("b"), at=InstantMs(2))
    check_chain(again.statements())
    assert len(again.statements()) == 2


def test_threads_do_not_fork_the_chain(tmp_path: Path) -> None:
    journal = SqlJournal.in_directory(tmp_path)

    def write(name: str) -> None:
        for number in range(10):
            journal.append(KIND, f"{name}{number}", act(name), at=InstantMs(number))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statements = journal.statements()
    assert len(statements) == 40
    check_chain(statements)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match="missing"):
        SqlJournal(f"sqlite:///{tmp_path / 'missing' / 'journal.sqlite'}")


def contents(path: Path) -> object:
    """What the journal holds: its rows, whenever SQLite may choose to move them from the log file into the database."""
    try:
        with closing(sqlite3.connect(path)) as database:
            return database.execute("SELECT * FROM statements").fetchall()
    except sqlite3.DatabaseError:
        return path.read_bytes()


@pytest.mark.parametrize("damage", ["not a database", "a row that is not JSON", "a row of no kind", "a lost column"])
def test_a_damaged_journal_is_named_and_nothing_is_added(damage: str, tmp_path: Path) -> None:
    first = SqlJournal.in_directory(tmp_path)
    first.append(KIND, "s", act("a"), at=InstantMs(1))
    first.close()  # an open connection would write its log file into the damaged database later
    path = tmp_path / "journal.sqlite"
    if damage == "not a database":
        (tmp_path / "journal.sqlite-wal").unlink(missing_ok=True)
        path.write_bytes(b"\xff\x00garbage" * 500)
    else:
        sql = {
            "a row that is not JSON": "UPDATE statements SET bytes = x'00'",
            "a row of no kind": "UPDATE statements SET bytes = '{}'",
            "a lost column": "ALTER TABLE statements RENAME COLUMN bytes TO lost",
        }[damage]
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(sql)
    before = contents(path)
    for use in (
        lambda: SqlJournal.in_directory(tmp_path).statements(),
        lambda: SqlJournal.in_directory(tmp_path).append(KIND, "t", act("b"), at=InstantMs(2)),
    ):
        with pytest.raises(FairtrialError, match=r"journal\.sqlite") as caught:
            use()
        assert not isinstance(caught.value, ControllerFault)
    assert contents(path) == before


def test_the_running_root_is_that_of_the_statements(journal: Journal) -> None:
    assert journal.running_root() == (0, root([]))
    for number in range(9):
        journal.append(KIND, f"s{number}", act(str(number)), at=InstantMs(number))
        journal.append(KIND, f"s{number}", act(str(number)), at=InstantMs(number))  # not a second statement
        assert journal.running_root() == (number + 1, root(leaves(journal.statements())))


def test_two_processes_do_not_fork_the_chain(tmp_path: Path) -> None:
    journals = [SqlJournal.in_directory(tmp_path) for _ in range(2)]  # each with a lock of its own, as processes have

    def write(journal: SqlJournal, name: str) -> None:
        for number in range(20):
            journal.append(KIND, f"{name}{number}", act(name), at=InstantMs(number))

    threads = [
        threading.Thread(target=write, args=(journal, name)) for journal, name in zip(journals, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statements = journals[0].statements()
    assert len(statements) == 40
    check_chain(statements)
    assert journals[1].running_root() == (40, root(leaves(statements)))


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM tree", "UPDATE tree SET size = 7", "UPDATE tree SET peaks = x'00'", "UPDATE tree SET size = 3"],
)
def test_a_tree_that_is_not_the_statements_is_a_damaged_journal(damage: str, tmp_path: Path) -> None:
    journal = SqlJournal.in_directory(tmp_path)
    for number in range(2):
        journal.append(KIND, f"s{number}", act("a"), at=InstantMs(1))
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database, database:
        database.execute(damage)
    with pytest.raises(NotCanonical, match="damaged: the tree"):
        SqlJournal.in_directory(tmp_path).append(KIND, "t", act("b"), at=InstantMs(2))
    assert len(SqlJournal.in_directory(tmp_path).statements()) == 2
