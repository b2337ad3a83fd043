"""SIGKILL the meter at every write of its ledger: no accepted request is lost, each ends once, none is sent again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pytest

from controller.adapters.ledger_by_url import open_ledger
from controller.adapters.ledger_sql import SqlLedger
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId
from controller.domain.usage import AttemptAccount, RequestState, ZeroBillProof
from tests.world.killed_meter import KilledMeter, KillPoint, Moment
from tests.world.postgres import PostgresServer
from tests.world.processes import CARD, MODEL, call, opening, short_directory
from tests.world.upstream import ScriptedUpstream

SETTLED, UNKNOWN, FREE = RequestState.SETTLED, RequestState.UNKNOWN, RequestState.ZERO_BILL
BEFORE, INSIDE, AFTER = Moment
# What must have become of the second request, by the point at which the meter died: its final state (None: it was
# never accepted, so nobody has to account for it), and whether the provider may have seen it.
ENDS: dict[tuple[str, Moment], tuple[RequestState | None, bool]] = {
    ("accept", BEFORE): (None, False),
    ("accept", INSIDE): (None, False),
    ("accept", AFTER): (FREE, False),
    ("mark_sent", BEFORE): (FREE, False),
    ("mark_sent", INSIDE): (FREE, False),
    ("mark_sent", AFTER): (UNKNOWN, False),
    ("finish", BEFORE): (UNKNOWN, True),
    ("finish", INSIDE): (UNKNOWN, True),
    ("finish", AFTER): (SETTLED, True),
}


@dataclass
class Bench:
    """One ledger, the provider, and meters that come and go."""

    directory: Path
    upstream: ScriptedUpstream
    location: str
    schema: str

    def __post_init__(self) -> None:
        (self.directory / "card.json").write_text(CARD.model_dump_json())
        self.config = self.directory / "meter.json"
        self.socket = self.directory / "meter.sock"
        settings = {
            "socket": str(self.socket),
            "ledger": self.location,
            "ledger_schema": self.schema,
            "rate_card": str(self.directory / "card.json"),
            "upstreams": {"rehearsal": self.upstream.url},
        }
        self.config.write_text(json.dumps(settings))
        with contextlib.closing(self.ledger()) as ledger:
            ledger.open_attempt(opening())

    def ledger(self) -> SqlLedger:
        """The ledger as the controller has it."""
        return open_ledger(self.location, SystemClock(), schema=self.schema)

    def meter(self, point: KillPoint | None = None) -> KilledMeter:
        """Start a meter, which may die while it starts."""
        return KilledMeter(self.config, self.socket, point)

    def ask(self, **body: str) -> None:
        """One request, whatever becomes of it."""
        payload = json.dumps({"model": MODEL, "messages": [], "max_tokens": 100} | body).encode()
        with contextlib.suppress(OSError, HTTPException):
            call(self.socket, "POST", "/v1/chat/completions", body=payload, headers={"x-api-key": "token-1"})

    def account_after_restart(self) -> AttemptAccount:
        """Start a meter that doesn't die, and end it; what the ledger says then."""
        meter = self.meter()
        meter.wait_ready()
        meter.stop()
        with contextlib.closing(self.ledger()) as ledger:
            return ledger.account(AttemptId("att-1"))


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with ScriptedUpstream() as upstream, short_directory() as directory:
        if request.param == "sqlite":
            yield Bench(directory, upstream, str(directory / "ledger.sqlite"), "unused")
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            yield Bench(directory, upstream, server.url(), server.schema())


def die(bench: Bench, point: KillPoint, *acts: Callable[[], None]) -> None:
    meter = bench.meter(point)
    meter.wait_ready()
    for act in acts:
        act()
    assert meter.exit_code() == -9
    meter.stop()


@pytest.mark.parametrize(("method", "moment"), ENDS)
def test_a_kill_at_any_write_leaves_every_request_with_one_end(bench: Bench, method: str, moment: Moment) -> None:
    die(bench, KillPoint(method, moment, number=2), bench.ask, bench.ask)
    seen = len(bench.upstream.received)
    state, was_sent = ENDS[method, moment]
    assert seen == 1 + was_sent
    account = bench.account_after_restart()
    assert len(bench.upstream.received) == seen  # nothing is sent again
    assert [row.state for row in account.requests] == [SETTLED, *([state] if state else [])]
    assert all(row.ended_at is not None and row.ended_at >= row.accepted_at for row in account.requests)
    assert [row.zero_bill_proof for row in account.requests if row.state is FREE] == [ZeroBillProof.NEVER_SENT] * (
        state is FREE
    )


@pytest.mark.parametrize("moment", Moment)
def test_a_kill_while_it_refuses_leaves_the_refusal_whole_or_not_at_all(bench: Bench, moment: Moment) -> None:
    die(bench, KillPoint("refuse", moment), lambda: bench.ask(model="another"))
    account = bench.account_after_restart()
    assert len(account.refusals) == (moment is AFTER)
    assert not account.requests and not bench.upstream.received


@pytest.mark.parametrize("moment", Moment)
def test_a_kill_while_it_recovers_is_recovered_from(bench: Bench, moment: Moment) -> None:
    die(bench, KillPoint("finish", BEFORE), bench.ask)
    second = bench.meter(KillPoint("recover", moment))
    assert second.exit_code() == -9
    second.stop()
    (request,) = bench.account_after_restart().requests
    assert (request.state, request.usd) == (UNKNOWN, None)
    assert len(bench.upstream.received) == 1
