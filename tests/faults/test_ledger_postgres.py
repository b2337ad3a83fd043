"""The ledger in PostgreSQL: what several meters share, what a server must promise, and what stops admission."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from controller.adapters import postgres_sessions
from controller.adapters.ledger_postgres import PostgresLedger
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.money import usd_from_text
from controller.domain.usage import RequestState
from controller.errors import InvalidInput, LedgerUnavailable
from controller.ports.ledger import MeterLife
from tests.contract.test_ledger import request_row, settle, settled
from tests.world.clock import SetClock
from tests.world.killed_meter import FORKS
from tests.world.ledger import METER
from tests.world.ledger_bench import Bench
from tests.world.postgres import USER, PostgresServer, postgres_server
from tests.world.processes import opening, short_directory
from tests.world.upstream import ScriptedUpstream

CLOCK = SetClock()
OTHER = MeterLife(place="there", life="1")
METERS = 4
ASKED_BY_EACH = 40
PATIENCE = 10_000


@pytest.fixture
def schema(postgres: PostgresServer) -> str:
    return postgres.schema()


@contextmanager
def meter(
    server: PostgresServer, schema: str, life: MeterLife | None = METER, database: str = "postgres"
) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(server.url(database), CLOCK, schema=schema, meter=life)) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresServer]:
    """A server to be broken."""
    with postgres_server() as server:
        yield server


def _hammer(url: str, schema: str, number: int, usd: str) -> list[str | None]:
    """One meter that asks, sends and settles as fast as it can, for both attempts of the run in turn."""
    life = MeterLife(place=f"meter-{number}", life="1")
    with closing(PostgresLedger(url, CLOCK, schema=schema, meter=life)) as ledger:
        answers = []
        for index in range(ASKED_BY_EACH):
            name = number * 1_000 + index
            for _ in range(PATIENCE):
                answer = settle(ledger, name, usd, attempt=1 + index % 2, run="run")
                if answer != "usd_in_flight":  # what is in flight elsewhere may yet cost less
                    break
            answers.append(answer)
        return answers


@pytest.mark.parametrize(
    ("limits", "usd", "accepted"),
    [
        (SpendLimits(requests_per_attempt=30, requests_per_logical_run=47, usd_per_attempt="100"), "0.001", 47),
        (SpendLimits(requests_per_attempt=20, requests_per_logical_run=180, usd_per_attempt="100"), "0.001", 40),
        # 0.07 is passed by the 24th request of 0.003, and by no further one.
        (SpendLimits(usd_per_attempt="100", usd_per_logical_run="0.07"), "0.003", 24),
    ],
)
def test_ceilings_hold_exactly_whoever_asks(
    postgres: PostgresServer, schema: str, limits: SpendLimits, usd: str, accepted: int
) -> None:
    run = LogicalRunId("run")
    with meter(postgres, schema, None) as reader:
        for attempt in (1, 2):
            reader.open_attempt(opening(attempt, limits=limits, logical_run_id=run))
        with ProcessPoolExecutor(METERS, mp_context=FORKS) as pool:
            jobs = [pool.submit(_hammer, postgres.url(), schema, number, usd) for number in range(METERS)]
            answers = [answer for job in jobs for answer in job.result()]
        rows = [row for attempt in (1, 2) for row in reader.account(AttemptId(f"att-{attempt}")).requests]
        for attempt in (1, 2):
            sequences = [row.sequence for row in reader.account(AttemptId(f"att-{attempt}")).requests]
            assert sequences == list(range(1, len(sequences) + 1))
    spent = sum((usd_from_text(row.usd or "0") for row in rows), Fraction(0))
    assert len(rows) == answers.count(None) == accepted
    assert spent < usd_from_text(limits.usd_per_logical_run) + usd_from_text(usd)


def test_only_the_requests_of_meters_that_are_gone_are_ended(postgres: PostgresServer, schema: str) -> None:
    with meter(postgres, schema) as living:
        living.open_attempt(opening())
        assert living.accept(request_row(1), estimate_usd="0") is None
        with meter(postgres, schema, OTHER) as dying:
            for number in (2, 3):
                assert dying.accept(request_row(number), estimate_usd="0") is None
            dying.mark_sent(RequestId("req-3"))
        with meter(postgres, schema, MeterLife(place="third", life="1")) as third:
            assert third.recover(at=InstantMs(9_000)) == 1
        living.mark_sent(RequestId("req-1"))
        living.finish(RequestId("req-1"), settled())
        states = [row.state for row in living.account(AttemptId("att-1")).requests]
        assert states == [RequestState.SETTLED, RequestState.ZERO_BILL, RequestState.UNKNOWN]


def test_a_meter_whose_place_is_still_taken_does_not_start(
    postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its predecessor may yet commit; what it left open can be neither ended nor left."""
    monkeypatch.setitem(postgres_sessions.SETTINGS, "lock_timeout", "100ms")
    with meter(postgres, schema) as predecessor, meter(postgres, schema, MeterLife(place="here", life="2")) as next_one:
        predecessor.open_attempt(opening())
        assert predecessor.accept(request_row(1), estimate_usd="0") is None
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            next_one.recover(at=InstantMs(9_000))
        predecessor.mark_sent(RequestId("req-1"))


def test_rows_are_only_ever_added(postgres: PostgresServer, schema: str) -> None:
    with meter(postgres, schema) as ledger:
        ledger.open_attempt(opening())
        settle(ledger, 1)
        for statement in (
            "DELETE FROM {}.requests",
            "UPDATE {}.requests SET usd = '0'",
            "TRUNCATE {}.requests",
            "TRUNCATE {}.refusals",
            "DELETE FROM {}.attempts",
        ):
            with pytest.raises(psycopg.IntegrityError):
                postgres.execute(statement.format(schema))
        assert ledger.account(AttemptId("att-1")).requests[0].usd == "0.5"


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("ALTER TABLE {}.requests DISABLE TRIGGER requests_end_once", "requests_end_once"),
        ("DROP TRIGGER refusals_stay ON {}.refusals", "refusals_stay"),
        ("UPDATE {}.identity SET value = 'older' WHERE name = 'version'", "version"),
    ],
)
def test_tables_that_are_not_ours_are_refused(postgres: PostgresServer, schema: str, statement: str, word: str) -> None:
    with meter(postgres, schema):
        postgres.execute(statement.format(schema))
    with pytest.raises(LedgerUnavailable, match=word), meter(postgres, schema, None):
        pass


def test_a_copy_of_the_database_is_refused_to_a_meter_and_shown_to_a_reader(postgres: PostgresServer) -> None:
    original = postgres.database()
    with meter(postgres, "round_1", database=original) as ledger:
        ledger.open_attempt(opening())
        settle(ledger, 1)
    copy = f"{original}_copy"
    postgres.execute(f"CREATE DATABASE {copy} TEMPLATE {original} OWNER {USER}")
    with pytest.raises(LedgerUnavailable, match="a copy") as refused, meter(postgres, "round_1", database=copy):
        pass
    assert "original" in refused.value.remedy
    with meter(postgres, "round_1", None, database=copy) as reader:
        assert len(reader.account(AttemptId("att-1")).requests) == 1


def test_a_session_promises_durability_whatever_its_role_prefers(postgres: PostgresServer) -> None:
    database = postgres.database()
    postgres.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    postgres.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'repeatable read'")
    with meter(postgres, "round_1", database=database) as first, meter(postgres, "round_1", OTHER, database) as second:
        first.open_attempt(opening(limits=SpendLimits(requests_per_attempt=2)))
        assert [settle(ledger, n) for n, ledger in enumerate((first, second, first))][2] == "requests_per_attempt"
    postgres.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(LedgerUnavailable, match="transaction_read_only"), meter(postgres, "round_1", None, database):
        pass


def test_a_server_that_forgets_what_it_acknowledges_is_refused(own: PostgresServer) -> None:
    for setting in ("fsync", "full_page_writes"):
        own.stop(signal.SIGINT)
        own.start(**{setting: "off"})
        with pytest.raises(LedgerUnavailable, match=setting), meter(own, "round_1"):
            pass
    own.stop(signal.SIGINT)
    own.start()


def test_a_server_that_went_away_is_not_believed_when_it_comes_back(own: PostgresServer) -> None:
    schema = own.schema()
    with meter(own, schema) as ledger:
        ledger.open_attempt(opening())
        settle(ledger, 1)
        own.stop()
        with pytest.raises(LedgerUnavailable):
            ledger.accept(request_row(2), estimate_usd="0")
        own.start()
        for _ in range(10):  # on every session that it has
            with pytest.raises(LedgerUnavailable):
                ledger.accept(request_row(2), estimate_usd="0")
            with pytest.raises(LedgerUnavailable):
                ledger.account(AttemptId("att-1"))
    with meter(own, schema, None) as reader:
        assert [row.usd for row in reader.account(AttemptId("att-1")).requests] == ["0.5"]


def test_one_lost_session_stops_the_meter_for_good(own: PostgresServer) -> None:
    schema = own.schema()
    with meter(own, schema) as ledger:
        ledger.open_attempt(opening())
        own.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{USER}'")
        with pytest.raises(LedgerUnavailable):
            ledger.accept(request_row(1), estimate_usd="0")
        with pytest.raises(LedgerUnavailable):
            ledger.find_by_token(opening().token_sha256)


def test_a_full_disk_of_the_server_admits_nothing(own: PostgresServer) -> None:
    schema = own.schema()
    with meter(own, schema) as ledger:
        ledger.open_attempt(opening())
        own.execute("SELECT pg_switch_wal()")
        own.limit_files(8192)
        with pytest.raises(LedgerUnavailable):
            for number in range(60):
                ledger.accept(request_row(number), estimate_usd="0")
        with pytest.raises(LedgerUnavailable):
            ledger.accept(request_row(99), estimate_usd="0")
    own.stop()
    own.start()
    with meter(own, schema, None) as reader:
        assert len(reader.account(AttemptId("att-1")).requests) <= 60


def test_a_server_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://meter@/ledger?host={tmp_path}"
    with pytest.raises(LedgerUnavailable, match="postgresql://") as refused:
        PostgresLedger(url, CLOCK, schema="round_1")
    assert "server" in refused.value.remedy
    with pytest.raises(InvalidInput, match="password"):
        PostgresLedger(url + "&password=hunter2", CLOCK, schema="round_1")
    with pytest.raises(InvalidInput, match="lower-case"):
        PostgresLedger(url, CLOCK, schema="x; DROP TABLE requests")


def test_the_password_comes_from_a_file_and_goes_nowhere(postgres: PostgresServer) -> None:
    database = postgres.database()
    postgres.execute("CREATE ROLE locked LOGIN PASSWORD 'hunter2'")
    postgres.execute(f"GRANT CREATE ON DATABASE {database} TO locked")
    url = postgres.url(database, "locked")
    with pytest.raises(LedgerUnavailable, match="password"):
        PostgresLedger(url, CLOCK, schema="round_1")
    with ScriptedUpstream() as upstream, short_directory() as directory:
        passfile = directory / "pgpass"
        passfile.write_text("*:*:*:locked:hunter2\n")
        passfile.chmod(0o600)
        bench = Bench(directory, upstream, f"{url}&passfile={passfile}", "round_1")
        running = bench.meter()
        running.wait_ready()
        answer = bench.ask()
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'")
        bench.ask()
        assert answer is not None and answer.status == 200
        assert running.exit_code() == LedgerUnavailable.exit_code
        running.stop()
        assert "terminat" in bench.read_log() and "hunter2" not in bench.read_log()
        told = [path for path in directory.iterdir() if path.is_file() and b"hunter2" in path.read_bytes()]
        assert told == [passfile]
