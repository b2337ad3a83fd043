"""One suite for every Ledger: the fake, the file and the database must not be told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from controller.adapters.ledger_postgres import PostgresLedger
from controller.adapters.ledger_sql import SqlLedger
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.usage import MeteredRequest, Refusal, RequestState, Usage, ZeroBillProof
from controller.errors import ControllerFault, InvalidInput, LedgerUnavailable
from controller.ports.ledger import Ledger, MeterLife, RequestEnd
from tests.world.clock import CLOCK_START, SetClock
from tests.world.ledger import METER, Memory, MemoryLedger, accepted
from tests.world.postgres import PostgresServer
from tests.world.processes import opening

USAGE = Usage(tokens={"in": 3, "out": 4})


class JumpingClock(SetClock):
    """A wall clock that can leave the monotonic one behind."""

    jump_ms = 0

    def now(self) -> InstantMs:
        return InstantMs(self.at + self.jump_ms)


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


Opening = Callable[[MeterLife | None], MemoryLedger | SqlLedger]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: JumpingClock) -> Iterator[Opening]:
    """Opens one and the same ledger: for a meter's life, or for none."""
    make: Opening
    if request.param == "memory":
        memory = Memory()
        make = lambda meter: MemoryLedger(clock, meter=meter, memory=memory)  # noqa: E731
    elif request.param == "sqlite":
        make = lambda meter: SqliteLedger(tmp_path / "ledger.sqlite", clock, meter=meter)  # noqa: E731
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        schema = server.schema()
        make = lambda meter: PostgresLedger(server.url(), clock, schema=schema, meter=meter)  # noqa: E731
    with ExitStack() as stack:
        yield lambda meter: stack.enter_context(closing(make(meter)))


@pytest.fixture
def ledger(opened: Opening) -> Ledger:
    """The ledger as a meter has it."""
    return opened(METER)


def request_row(number: int = 1, *, attempt: int = 1, run: str | None = None, counts: bool = True) -> MeteredRequest:
    return accepted(f"req-{number}", f"att-{attempt}", run or f"run-{attempt}", counts=counts, note="as sent")


def settled(usd: str = "0.5", message: str | None = None) -> RequestEnd:
    return RequestEnd(
        state=RequestState.SETTLED,
        ended_at=InstantMs(2_000),
        status=200,
        provider_message_id=message,
        observed_model="rehearsal-1",
        served_tier="standard",
        served_speed="fast",
        served_geo="us",
        usage=USAGE,
        usd=usd,
        note="done",
    )


def settle(ledger: Ledger, number: int, usd: str = "0.5", *, attempt: int = 1, run: str | None = None) -> str | None:
    limit = ledger.accept(request_row(number, attempt=attempt, run=run), estimate_usd=usd)
    if limit is None:
        ledger.mark_sent(RequestId(f"req-{number}"))
        ledger.finish(RequestId(f"req-{number}"), settled(usd))
    return limit


def test_a_request_keeps_everything_it_was_told(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    assert settle(ledger, 1) is None
    (row,) = ledger.account(AttemptId("att-1")).requests
    expected = {
        "state": RequestState.SETTLED,
        "ended_at": 2_000,
        "status": 200,
        "observed_model": "rehearsal-1",
        "served_tier": "standard",
        "served_speed": "fast",
        "served_geo": "us",
        "usage": USAGE,
        "usd": "0.5",
        "note": "as sent done",
    }
    assert row == request_row().model_copy(update=expected)


def test_opening_twice_is_one_opening_and_other_terms_are_refused(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    ledger.open_attempt(opening())
    with pytest.raises(InvalidInput):
        ledger.open_attempt(opening(key="other"))
    with pytest.raises(InvalidInput):
        ledger.open_attempt(opening(2, token_sha256=opening(1).token_sha256))


def test_a_token_ends_with_its_attempt(ledger: Ledger, clock: SetClock) -> None:
    ledger.open_attempt(opening(1, expires_at=InstantMs(5_000)))
    ledger.open_attempt(opening(2))
    token = opening(1).token_sha256
    assert ledger.find_by_token(token) == opening(1, expires_at=InstantMs(5_000))
    assert ledger.find_by_token("0" * 64) is None
    clock.at = InstantMs(5_000)
    assert ledger.find_by_token(token) is None
    ledger.close_attempt(AttemptId("att-2"))
    assert ledger.find_by_token(opening(2).token_sha256) is None
    assert ledger.accept(request_row(attempt=2), estimate_usd="0") == "attempt_closed"
    assert not ledger.account(AttemptId("att-2")).open


def test_an_expired_attempt_accepts_nothing(ledger: Ledger) -> None:
    ledger.open_attempt(opening(expires_at=InstantMs(1_000)))
    assert ledger.accept(request_row(), estimate_usd="0") == "attempt_expired"


def test_requests_are_counted_per_attempt_and_per_run(ledger: Ledger) -> None:
    limits = SpendLimits(requests_per_attempt=2, requests_per_logical_run=3, count_tokens_per_attempt=1)
    run = LogicalRunId("run")
    for attempt in (1, 2):
        ledger.open_attempt(opening(attempt, limits=limits, logical_run_id=run))
    assert [settle(ledger, number, "0.01", run=run) for number in (1, 2, 3)] == [None, None, "requests_per_attempt"]
    outcomes = [settle(ledger, number, "0.01", attempt=2, run=run) for number in (4, 5)]
    assert outcomes == [None, "requests_per_logical_run"]
    free = [ledger.accept(request_row(n, run=run, counts=False), estimate_usd="0") for n in (6, 7)]
    assert free == [None, "count_tokens_per_attempt"]


def test_money_is_refused_at_the_ceiling_and_not_below_it(ledger: Ledger) -> None:
    ledger.open_attempt(opening(limits=SpendLimits(usd_per_attempt="1.00", requests_per_attempt=60)))
    outcomes = [settle(ledger, number, "0.025") for number in range(1, 42)]
    assert outcomes == [None] * 40 + ["usd_per_attempt"]


def test_what_is_in_flight_fills_the_ceiling_for_now(ledger: Ledger) -> None:
    ledger.open_attempt(opening(limits=SpendLimits(usd_per_attempt="1.00")))
    assert ledger.accept(request_row(1), estimate_usd="1.00") is None
    assert ledger.accept(request_row(2), estimate_usd="0.01") == "usd_in_flight"
    ledger.finish(RequestId("req-1"), settled("0.99"))
    assert ledger.accept(request_row(2), estimate_usd="0.01") is None


def test_an_unknown_cost_counts_at_its_bound(ledger: Ledger) -> None:
    ledger.open_attempt(opening(limits=SpendLimits(usd_per_attempt="1.00")))
    assert ledger.accept(request_row(1), estimate_usd="1.00") is None
    ledger.finish(RequestId("req-1"), RequestEnd(state=RequestState.UNKNOWN, ended_at=InstantMs(2_000)))
    assert ledger.accept(request_row(2), estimate_usd="0") == "usd_per_attempt"


def test_the_runs_ceiling_covers_all_its_attempts(ledger: Ledger) -> None:
    run = LogicalRunId("run")
    for attempt in (1, 2):
        ledger.open_attempt(opening(attempt, limits=SpendLimits(usd_per_logical_run="1.5"), logical_run_id=run))
    assert settle(ledger, 1, "0.9", run=run) is None
    assert settle(ledger, 2, "0.6", attempt=2, run=run) is None
    assert settle(ledger, 3, "0.1", attempt=2, run=run) == "usd_per_logical_run"


@pytest.mark.parametrize("state", [RequestState.ACCEPTED, RequestState.SENT])
def test_an_open_state_ends_nothing(ledger: Ledger, state: RequestState) -> None:
    ledger.open_attempt(opening())
    ledger.accept(request_row(), estimate_usd="0")
    with pytest.raises(ControllerFault):
        ledger.finish(RequestId("req-1"), RequestEnd(state=state, ended_at=InstantMs(2_000)))


def test_a_request_ends_exactly_once(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    settle(ledger, 1)
    with pytest.raises(ControllerFault):
        ledger.finish(RequestId("req-1"), settled())
    with pytest.raises(ControllerFault):
        ledger.mark_sent(RequestId("req-1"))
    with pytest.raises(ControllerFault):
        ledger.finish(RequestId("req-2"), settled())
    with pytest.raises(ControllerFault):
        ledger.accept(request_row(1), estimate_usd="0")


def test_a_provider_message_settles_once(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    for number in (1, 2):
        ledger.accept(request_row(number), estimate_usd="0")
    ledger.finish(RequestId("req-1"), settled(message="msg_1"))
    with pytest.raises(ControllerFault):
        ledger.finish(RequestId("req-2"), settled(message="msg_1"))
    ledger.finish(RequestId("req-2"), settled(message="msg_2"))
    assert [row.provider_message_id for row in ledger.account(AttemptId("att-1")).requests] == ["msg_1", "msg_2"]


def test_recovery_names_what_is_proven_and_what_is_not(opened: Opening) -> None:
    ledger = opened(METER)
    ledger.open_attempt(opening())
    for number in (1, 2):
        ledger.accept(request_row(number), estimate_usd="0")
    settle(ledger, 3)
    ledger.mark_sent(RequestId("req-2"))
    ledger.close()
    after = opened(MeterLife(place="here", life="2"))
    assert after.recover(at=InstantMs(9_000)) == 1
    assert after.recover(at=InstantMs(9_999)) == 0
    never, unknown, done = after.account(AttemptId("att-1")).requests
    assert (never.state, never.zero_bill_proof, never.usd) == (
        RequestState.ZERO_BILL,
        ZeroBillProof.NEVER_SENT,
        "0",
    )
    assert (unknown.state, unknown.usd, unknown.ended_at) == (RequestState.UNKNOWN, None, 9_000)
    assert done.state is RequestState.SETTLED


def test_recovery_leaves_a_living_meter_alone(opened: Opening) -> None:
    ledger = opened(METER)
    ledger.open_attempt(opening())
    for number in (1, 2):
        ledger.accept(request_row(number), estimate_usd="0")
    ledger.mark_sent(RequestId("req-2"))
    assert ledger.recover(at=InstantMs(9_000)) == 0
    assert opened(None).recover(at=InstantMs(9_000)) == 0  # a reader
    ledger.mark_sent(RequestId("req-1"))
    for number in (1, 2):
        ledger.finish(RequestId(f"req-{number}"), settled())


def test_what_is_recovered_never_ends_before_it_was_accepted(opened: Opening) -> None:
    """The recovering meter's clock may be behind."""
    ledger = opened(METER)
    ledger.open_attempt(opening())
    for number in (1, 2):
        ledger.accept(request_row(number), estimate_usd="0")
    ledger.mark_sent(RequestId("req-2"))
    ledger.close()
    after = opened(MeterLife(place="here", life="2"))
    assert after.recover(at=InstantMs(5)) == 1
    assert [row.ended_at for row in after.account(AttemptId("att-1")).requests] == [CLOCK_START, CLOCK_START]


def test_an_end_before_the_acceptance_is_refused(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    ledger.accept(request_row(), estimate_usd="0")
    with pytest.raises(ControllerFault):
        ledger.finish(RequestId("req-1"), settled().model_copy(update={"ended_at": InstantMs(CLOCK_START - 1)}))
    ledger.finish(RequestId("req-1"), settled().model_copy(update={"ended_at": CLOCK_START}))


@pytest.mark.parametrize("jump_ms", [30_001, -30_001, 86_400_000, -86_400_000])
def test_nothing_is_accepted_after_the_clock_jumped(ledger: Ledger, clock: JumpingClock, jump_ms: int) -> None:
    ledger.open_attempt(opening())
    clock.sleep(86_400)  # time that passes is no jump
    assert ledger.accept(request_row(1), estimate_usd="0") is None
    clock.jump_ms = jump_ms
    with pytest.raises(LedgerUnavailable, match="clock"):
        ledger.accept(request_row(2), estimate_usd="0")
    ledger.finish(RequestId("req-1"), settled())  # what was accepted still ends
    clock.jump_ms = 30_000 if jump_ms > 0 else -30_000
    assert ledger.accept(request_row(2), estimate_usd="0") is None


def test_a_clock_that_is_behind_the_newest_request_recovers_nothing(opened: Opening) -> None:
    ledger = opened(METER)
    ledger.open_attempt(opening())
    ledger.accept(accepted("req-1", "att-1", "run-1", at=InstantMs(100_000)), estimate_usd="0")
    ledger.close()
    after = opened(MeterLife(place="here", life="2"))
    with pytest.raises(LedgerUnavailable, match="behind"):
        after.recover(at=InstantMs(69_999))
    assert after.recover(at=InstantMs(70_000)) == 0
    assert after.account(AttemptId("att-1")).requests[0].ended_at == 100_000


def test_a_ledger_of_no_meter_accepts_nothing(opened: Opening) -> None:
    reader = opened(None)
    reader.open_attempt(opening())
    with pytest.raises(ControllerFault):
        reader.accept(request_row(), estimate_usd="0")


def test_a_text_that_no_database_holds_is_kept_as_an_escape(ledger: Ledger) -> None:
    """A harness chooses some of these texts; one that made a write fail would stop the meter."""
    odd = "a\0b\ud800\u2028c"
    kept = "a\\x00b\\ud800\u2028c"
    ledger.open_attempt(opening())
    ledger.refuse(Refusal(attempt_id=AttemptId("att-1"), at=InstantMs(1), reason=odd, status=400, limit=False))
    ledger.accept(request_row().model_copy(update={"note": odd}), estimate_usd="0")
    texts = ("provider_message_id", "observed_model", "served_tier", "served_speed", "served_geo", "note")
    ledger.finish(
        RequestId("req-1"),
        settled().model_copy(update=dict.fromkeys((*texts, "raw_usage_json"), odd)),
    )
    account = ledger.account(AttemptId("att-1"))
    assert account.refusals[0].reason == kept
    expected = dict.fromkeys(texts, kept) | {"note": f"{kept} {kept}"}
    assert {name: getattr(account.requests[0], name) for name in expected} == expected


def test_refusals_belong_to_their_attempt(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    mine = Refusal(attempt_id=AttemptId("att-1"), at=InstantMs(1), reason="r", status=403, limit=True)
    ledger.refuse(mine)
    ledger.refuse(mine.model_copy(update={"attempt_id": None}))
    assert ledger.account(AttemptId("att-1")).refusals == (mine,)


def test_an_attempt_that_was_never_opened_has_an_empty_account_and_accepts_nothing(ledger: Ledger) -> None:
    account = ledger.account(AttemptId("att-9"))
    assert (account.requests, account.refusals, account.open) == ((), (), False)
    with pytest.raises(InvalidInput):
        ledger.accept(request_row(attempt=9), estimate_usd="0")


def test_an_attempt_closed_unused_may_begin_again_under_a_new_token(ledger: Ledger) -> None:
    ledger.open_attempt(opening())
    ledger.close_attempt(AttemptId("att-1"))
    again = opening(token_sha256="f" * 64)
    ledger.open_attempt(again)
    assert ledger.find_by_token("f" * 64) == again
    assert ledger.find_by_token(opening().token_sha256) is None
    assert settle(ledger, 1) is None
    ledger.close_attempt(AttemptId("att-1"))
    with pytest.raises(InvalidInput):
        ledger.open_attempt(opening(token_sha256="e" * 64))
