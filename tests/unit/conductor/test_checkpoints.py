"""The log is signed when it must be, and never when it is not what was signed before."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.adapters.journal_sql import SqlJournal
from controller.conductor import rounds
from controller.conductor.checkpoints import Checkpoints, checkpoint_paths
from controller.domain.bodies import OperatorAct
from controller.domain.instant import InstantMs
from controller.domain.statement import StatementKind
from controller.domain.stops import StopEvent
from controller.errors import BadSignature, InvalidInput, LogRewritten, NotCanonical
from controller.evidence.log import checkpoint_of, leaves
from controller.evidence.note import check_checkpoint, log_origin, sign_checkpoint
from tests.world.clock import SetClock
from tests.world.signer import FixedSigner
from tests.world.simulation import Simulation

SIGNER = FixedSigner()


class Log:
    """A log on the disk with as many statements as asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.clock = directory, SetClock()
        self.journal = SqlJournal.in_directory(directory)

    def grow(self, count: int = 1) -> None:
        for _ in range(count):
            number, _ = self.journal.running_root()
            body = OperatorAct(act="stop", note=f"note {number}")
            self.journal.append(StatementKind.OPERATOR_ACT, f"s{number}", body, at=InstantMs(number))

    def checkpoints(self, label: str = "publisher") -> Checkpoints:
        return Checkpoints(
            self.directory,
            "demo",
            journal=self.journal,
            signer=FixedSigner(label),
            files=LocalFiles(),
            clock=self.clock,
        )

    def damage(self, sql: str) -> None:
        self.journal.close()
        with closing(sqlite3.connect(self.directory / "journal.sqlite")) as database, database:
            database.execute(sql)
        self.journal = SqlJournal.in_directory(self.directory)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    found = Log(tmp_path)
    found.grow(5)
    return found


def test_a_signed_state_is_of_the_whole_log_and_is_kept(log: Log) -> None:
    path = log.checkpoints().sign()
    assert path.relative_to(log.directory).as_posix() == "checkpoints/5.txt"
    signed = check_checkpoint(path.read_bytes(), log_origin("demo"), SIGNER.ring)
    assert signed == checkpoint_of("demo", leaves(log.journal.statements()))
    before = path.read_bytes()
    assert log.checkpoints().sign() == path
    assert path.read_bytes() == before
    log.grow()
    log.checkpoints().sign()
    assert list(checkpoint_paths(log.directory)) == [5, 6]


def test_an_hour_passes_between_two_signatures_of_one_process(log: Log) -> None:
    checkpoints = log.checkpoints()
    checkpoints.sign()
    signed = []
    for seconds in (0, 3599, 3600, 3601, 7199, 7200):
        log.grow()
        log.clock.at = InstantMs(1_000 + seconds * 1000)
        checkpoints.tick()
        signed.append(max(checkpoint_paths(log.directory)))
    assert signed == [5, 5, 8, 8, 8, 11]


REWRITTEN: dict[str, tuple[str, type[Exception], str]] = {
    "a statement altered": (
        "UPDATE statements SET bytes = CAST(replace(bytes, 'note 1', 'note X') AS BLOB)",
        LogRewritten,
        "do not give the root",
    ),
    "the tail cut off": (
        "DELETE FROM statements WHERE sequence = 4", LogRewritten, "kept over 5 statements, and the log has 4",
    ),
    "two statements exchanged": (
        "UPDATE statements SET sequence = CASE sequence WHEN 2 THEN 30 ELSE sequence END", LogRewritten, "do not give",
    ),
    "the tree emptied": ("UPDATE tree SET size = 0, peaks = x''", LogRewritten, "over 0 statements, and the log has 5"),
    "the tree shortened": ("UPDATE tree SET size = 4, peaks = substr(peaks, 1, 32)", LogRewritten, "over 4 statements"),
    "the tree bent": (
        "UPDATE tree SET peaks = CAST(substr(peaks, 33) || substr(peaks, 1, 32) AS BLOB)", LogRewritten, "do not give",
    ),
    "the tree of another size": ("UPDATE tree SET size = 7", NotCanonical, "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", REWRITTEN)
def test_nothing_is_signed_when_the_statements_do_not_give_the_root_that_was_kept(name: str, log: Log) -> None:
    sql, error, finding = REWRITTEN[name]
    log.damage(sql)
    with pytest.raises(error, match=finding):
        log.checkpoints().sign()
    assert checkpoint_paths(log.directory) == {}


@pytest.mark.parametrize("name", REWRITTEN)
def test_nothing_is_signed_that_does_not_continue_what_was_signed(name: str, log: Log) -> None:
    sql, error, _ = REWRITTEN[name]
    log.checkpoints().sign()
    log.damage(sql)
    with pytest.raises(error):
        log.checkpoints().sign()
    assert list(checkpoint_paths(log.directory)) == [5]


def test_another_log_in_the_place_of_the_signed_one_is_not_signed(log: Log, tmp_path: Path) -> None:
    log.checkpoints().sign()
    (tmp_path / "other" / "checkpoints").mkdir(parents=True)
    other = Log(tmp_path / "other")
    body = OperatorAct(act="stop", note="another beginning")
    other.journal.append(StatementKind.OPERATOR_ACT, "first", body, at=InstantMs(9))
    other.grow(6)
    (other.directory / "checkpoints" / "5.txt").write_bytes((log.directory / "checkpoints" / "5.txt").read_bytes())
    with pytest.raises(LogRewritten, match="the first 5 statements are not those"):
        other.checkpoints().sign()


def _flipped(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n5\n", b"\n6\n"))


@pytest.mark.parametrize(
    ("change", "error", "finding"),
    [
        (_flipped, BadSignature, "does not match"),
        (lambda path: path.write_bytes(b""), BadSignature, "not a signed checkpoint"),
        (lambda path: path.rename(path.with_name("4.txt")), NotCanonical, "signs 5 statements"),
        (
            lambda path: path.write_bytes(sign_checkpoint(checkpoint_of("demo", [b"x"] * 5), FixedSigner("rival"))),
            BadSignature,
            "none of the trusted keys",
        ),
    ],
    ids=["flipped", "emptied", "renamed", "another's"],
)
def test_a_kept_state_that_was_changed_is_named_and_nothing_is_signed(
    change: Callable[[Path], object], error: type[Exception], finding: str, log: Log
) -> None:
    change(log.checkpoints().sign())
    log.grow()
    with pytest.raises(error, match=finding):
        log.checkpoints().sign()
    assert 6 not in checkpoint_paths(log.directory)


def test_a_conducted_round_is_signed_at_freeze_at_each_start_and_at_its_close(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    rounds.stop(simulation.journal, simulation.clock, "small", "maintenance")
    for _ in range(2):
        rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    simulation.settle()
    statements = simulation.journal.statements()
    starts = [s.sequence for s in statements if s.kind is StatementKind.ROUND_STARTED]
    intents = [s.sequence for s in statements if s.kind is StatementKind.ATTEMPT_INTENDED]
    sizes = list(checkpoint_paths(simulation.directory))
    assert sizes[0] == 1
    assert sizes[-1] == len(statements)
    assert any(starts[0] < size <= intents[0] for size in sizes)
    assert any(starts[1] < size <= len(statements) - 2 for size in sizes)


def test_a_round_whose_log_was_changed_is_not_started(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, journal=SqlJournal.in_directory)
    with closing(sqlite3.connect(simulation.directory / "journal.sqlite")) as database, database:
        database.execute("""UPDATE statements SET bytes = CAST(replace(bytes, '"at":179', '"at":189') AS BLOB)""")
    leases = simulation.pool.leases
    with pytest.raises(LogRewritten, match="do not give the root"):
        rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    assert simulation.pool.leases == leases


def test_a_declared_event_ends_the_round_and_a_pause_does_not(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    exposure = StopEvent.SEALED_TASK_EXPOSURE
    rounds.stop(simulation.journal, simulation.clock, "small", "a prompt was on a forum", event=exposure)
    status = rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    assert (status.state, status.stopped_by) == ("stopped", "sealed-task-exposure: a prompt was on a forum")
    assert not simulation.started
    simulation.settle()
    with pytest.raises(InvalidInput, match="closed"):
        rounds.stop(simulation.journal, simulation.clock, "small", "again", event=exposure)
