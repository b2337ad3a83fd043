"""SIGKILL the meter at every write of its ledger: no accepted request is lost, each ends once, none is sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from controller.domain.usage import RequestState, ZeroBillProof
from tests.world.killed_meter import KillPoint, Moment
from tests.world.ledger_bench import Bench
from tests.world.postgres import PostgresServer
from tests.world.processes import short_directory
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


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with ScriptedUpstream() as upstream, short_directory() as directory:
        if request.param == "sqlite":
            yield Bench(directory, upstream, str(directory / "ledger.sqlite"), "unused")
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            yield Bench(directory, upstream, server.url(), server.schema())


def die(bench: Bench, point: KillPoint, *acts: Callable[[], object]) -> None:
    meter = bench.meter(point)
    meter.wait_ready()
    for act in acts:
        act()
    assert meter.exit_code() == -9
    meter.stop()


@pytest.mark.parametrize(("method", "moment"), ENDS)
def test_a_kill_at_any_write_leaves_every_request_with_one_end(bench: Bench, method: str, moment: Moment) -> None:
    die(bench, KillPoint(method, moment, number=2), bench.ask_to_the_end, bench.ask)
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
