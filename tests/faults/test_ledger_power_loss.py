"""Cut the power between any two sectors: the file opens, and what was acknowledged is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from controller.adapters.ledger_sqlite import SqliteLedger
from controller.domain.ids import AttemptId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.usage import RequestState
from controller.ports.ledger import RequestEnd
from tests.world.clock import SetClock
from tests.world.ledger import METER, accepted
from tests.world.power_loss import Acknowledged, Disk, Event, Synced, Written, lay_down, recording
from tests.world.processes import opening

MEMORY = Path("/dev/shm")
ATTEMPTS = 4
REQUESTS_PER_ATTEMPT = 30  # enough that the log is written back into the file once, and begun anew
LIMITS = SpendLimits(usd_per_attempt="100", usd_per_logical_run="100")
END = RequestEnd(
    state=RequestState.SETTLED, ended_at=InstantMs(2_000), status=200, usd="0.5", raw_usage_json='{"in": 3}' * 400
)
States = dict[str, RequestState]


def workload(path: Path, events: list[Event]) -> list[States]:
    """Fill a ledger; what the requests' states were after each acknowledged call."""
    states: list[States] = [{}]

    def acknowledged(**changed: RequestState) -> None:
        states.append(states[-1] | changed)
        events.append(Acknowledged(len(states) - 1))

    with recording(events), closing(SqliteLedger(path, SetClock(), meter=METER)) as ledger:
        events.append(Acknowledged(0))
        for attempt in range(ATTEMPTS):
            ledger.open_attempt(opening(attempt, limits=LIMITS))
            acknowledged()
            for number in range(REQUESTS_PER_ATTEMPT):
                name = f"req_{attempt}_{number}"
                ledger.accept(accepted(name, f"att-{attempt}", f"run-{attempt}"), estimate_usd="0")
                acknowledged(**{name: RequestState.ACCEPTED})
                ledger.mark_sent(RequestId(name))
                acknowledged(**{name: RequestState.SENT})
                ledger.finish(RequestId(name), END)
                acknowledged(**{name: RequestState.SETTLED})
    return states


def cuts(events: list[Event]) -> list[tuple[int, int]]:
    """Every moment at which the power can go: before which event, and how many sectors of the unsynced are on disk.

    Only the moment before a sync is taken, when the most is unsynced: earlier ones are its beginnings.
    """
    disk, found = Disk(), []
    started = False
    for position, event in enumerate(events):
        started = started or isinstance(event, Acknowledged)
        if started and isinstance(event, Synced):
            found += [(position, sectors) for sectors in range(disk.pending_sectors() + 1)]
        disk.see(event)
    return found


def begun_anew(events: list[Event]) -> bool:
    """Whether SQLite wrote the log back into the file and overwrote the log, between two acknowledgements."""
    last = max(position for position, event in enumerate(events) if isinstance(event, Acknowledged))
    heads = [e for e in events[:last] if isinstance(e, Written) and e.path.endswith("-wal") and e.offset == 0]
    return len(heads) >= 2


def states_in(directory: Path) -> States:
    with closing(SqliteLedger(directory / "ledger.sqlite", SetClock())) as ledger:
        accounts = [ledger.account(AttemptId(f"att-{attempt}")) for attempt in range(ATTEMPTS)]
    return {str(row.request_id): row.state for account in accounts for row in account.requests}


def check_cuts(tmp_path: Path, count: int) -> tuple[int, int]:
    """Cut at `count` moments spread over the whole life of a ledger, in order and by chance; how many images, and how
    many held the call in progress."""
    events: list[Event] = []
    states = workload(tmp_path / "ledger.sqlite", events)
    assert begun_anew(events), "the log was never written back, so that was not tried"
    every = cuts(events)
    chosen = {every[index * len(every) // count] for index in range(count)}
    disk, chance, opened, ahead = Disk(), Random(20_260), 0, 0
    for position, event in enumerate(events):
        for _, sectors in sorted(cut for cut in chosen if cut[0] == position):
            for files in (disk.torn(sectors), disk.scattered(chance)):
                # In memory where there is such a place: an image is opened, not kept.
                with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as directory:
                    lay_down(files, Path(directory))
                    found = states_in(Path(directory))
                known = disk.acknowledged
                assert found in states[known : known + 2], f"cut before event {position}, {sectors} sectors written"
                opened += 1
                ahead += found != states[known]
        disk.see(event)
    assert disk.acknowledged == len(states) - 1
    return opened, ahead


def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path) -> None:
    opened, _ = check_cuts(tmp_path, 75)
    assert opened >= 150


@pytest.mark.slow
def test_no_power_cut_of_two_thousand_loses_what_was_acknowledged(tmp_path: Path) -> None:
    opened, ahead = check_cuts(tmp_path, 1_000)
    assert opened >= 2_000 and ahead > 0


def test_the_recorder_sees_the_loss_that_a_weaker_setting_allows(tmp_path: Path) -> None:
    events: list[Event] = []
    with recording(events), closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as weak:
        weak.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE rows (a)")
        weak.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        weak.execute("INSERT INTO rows VALUES (1)")
        events.append(Acknowledged(1))
        disk = Disk()
        for event in events:
            disk.see(event)
    lay_down(disk.bare(), tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as after:
        assert after.execute("SELECT count(*) FROM rows").fetchone() == (0,)
    lay_down(disk.whole(), tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as after:
        assert after.execute("SELECT count(*) FROM rows").fetchone() == (1,)
