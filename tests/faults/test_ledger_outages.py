"""A real meter whose ledger can't be written any more, or whose clock jumps: nothing is admitted, nothing is lost."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException

import pytest

from controller.domain.instant import InstantMs
from controller.domain.usage import RequestState
from tests.world.killed_meter import KilledMeter
from tests.world.ledger_bench import Bench
from tests.world.postgres import postgres_server
from tests.world.processes import call, short_directory
from tests.world.upstream import ScriptedUpstream

HOUR, DAY = 3_600, 86_400
UNAVAILABLE = 99


@dataclass
class Outage:
    """A bench, how to break its ledger under a running meter, and how to mend it."""

    bench: Bench
    strike: Callable[[KilledMeter], None]
    mend: Callable[[], None]


def _disk_full(meter: KilledMeter) -> None:
    """The kernel refuses the meter any byte past this offset, as a full disk would."""
    pid = meter.process.pid
    assert pid is not None
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (8192, 8192))


@pytest.fixture(params=["full disk", "server gone", "server's disk full"])
def outage(request: pytest.FixtureRequest) -> Iterator[Outage]:
    with ScriptedUpstream() as upstream, short_directory() as directory:
        if request.param == "full disk":
            yield Outage(
                Bench(directory, upstream, str(directory / "ledger.sqlite"), "unused"), _disk_full, lambda: None
            )
            return
        with postgres_server() as server:

            def restart() -> None:
                server.stop(signal.SIGQUIT)
                server.start()

            bench = Bench(directory, upstream, server.url(), "round_1")
            if request.param == "server gone":
                yield Outage(bench, lambda _: server.stop(), server.start)
            else:
                yield Outage(bench, lambda _: server.limit_files(8192), restart)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ScriptedUpstream() as upstream, short_directory() as directory:
        yield Bench(directory, upstream, str(directory / "ledger.sqlite"), "unused")


def health(bench: Bench) -> int | None:
    """The status of the health check; None once nobody listens."""
    try:
        return call(bench.socket, "GET", "/healthz").status
    except (OSError, HTTPException):
        return None


def test_a_ledger_that_fails_admits_nothing_and_ends_the_meter(outage: Outage) -> None:
    bench = outage.bench
    bench.open(2, provider_key_name="held")
    meter = bench.meter()
    meter.wait_ready()
    answered = bench.ask()
    assert answered is not None and answered.status == 200
    bench.upstream.forget()
    with ThreadPoolExecutor(1) as pool:
        in_flight = pool.submit(bench.ask, 2)
        assert bench.upstream.reached.wait(30)
        outage.strike(meter)
        refused = bench.ask()
        assert refused is not None and refused.status == 400 and "ledger" in refused.json()["error"]["message"]
        assert health(bench) in (503, None)
        bench.upstream.hold.set()
        in_flight.result()
    assert meter.exit_code() == UNAVAILABLE
    assert len(bench.upstream.received) == 1
    outage.mend()
    states = [row.state for row in bench.account_after_restart().requests]
    assert states in ([RequestState.SETTLED], [RequestState.SETTLED, RequestState.ZERO_BILL])
    (request,) = bench.account(2).requests
    assert (request.state, request.usd) == (RequestState.UNKNOWN, None)
    assert len(bench.upstream.received) == 1
    meter.stop()


@pytest.mark.parametrize("back_seconds", [HOUR, -DAY])
def test_a_clock_that_jumps_stops_admission_and_what_is_in_flight_ends(bench: Bench, back_seconds: int) -> None:
    bench.open(2, provider_key_name="held")
    meter = bench.meter()
    meter.wait_ready()
    with ThreadPoolExecutor(1) as pool:
        in_flight = pool.submit(bench.ask, 2)
        assert bench.upstream.reached.wait(30)
        bench.set_clock_back(back_seconds)
        refused = bench.ask()
        assert refused is not None and refused.status == 400
        bench.upstream.hold.set()
        answer = in_flight.result()
        assert answer is not None and answer.status == 200
    assert meter.exit_code() == UNAVAILABLE
    (request,) = bench.account(2).requests
    assert request.state is RequestState.SETTLED
    assert request.ended_at is not None and request.ended_at >= request.accepted_at
    assert not bench.account().requests and len(bench.upstream.received) == 1
    meter.stop()


def test_a_clock_that_is_behind_the_ledger_starts_no_meter(bench: Bench) -> None:
    meter = bench.meter()
    meter.wait_ready()
    bench.ask()
    meter.stop()
    bench.set_clock_back(HOUR)
    early = bench.meter()
    assert early.exit_code() == UNAVAILABLE
    early.stop()
    bench.set_clock_back(0)
    assert [row.state for row in bench.account_after_restart().requests] == [RequestState.SETTLED]


def test_an_attempt_ends_at_its_expiry_by_the_clock(bench: Bench) -> None:
    now = time.time_ns() // 1_000_000
    bench.open(2, expires_at=InstantMs(now + HOUR * 1000))
    bench.set_clock_back(-2 * HOUR)  # before it starts, so that it is the time and no jump
    meter = bench.meter()
    meter.wait_ready()
    refused = bench.ask(2)
    assert refused is not None and refused.status == 401
    meter.stop()
    assert not bench.account(2).requests and not bench.upstream.received
