"""The meter's books wait for what is in flight, and refuse only what the settled cost forbids."""

from __future__ import annotations

import asyncio
import threading

import pytest

from controller.adapters.http_service import Stop
from controller.domain.ids import RequestId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.money import UsdText
from controller.domain.usage import MeteredRequest, RequestState, Usage
from controller.meter.admission import Refused
from controller.ports.ledger import RequestEnd
from controller.proxy.books import Books
from tests.world.clock import SetClock
from tests.world.ledger import MemoryLedger, accepted
from tests.world.processes import opening

LIMITS = SpendLimits(usd_per_attempt="1.00")


class SlowLedger(MemoryLedger):
    """Decides at once, and tells the second request only when it is let go."""

    def __init__(self) -> None:
        super().__init__(SetClock())
        self.decided, self.tell = threading.Event(), threading.Event()
        self.open_attempt(opening(limits=LIMITS))

    def accept(self, request: MeteredRequest, *, estimate_usd: UsdText) -> str | None:
        answer = super().accept(request, estimate_usd=estimate_usd)
        if request.request_id == RequestId("req-2"):
            self.decided.set()
            assert self.tell.wait(10)
        return answer


def row(number: int) -> MeteredRequest:
    return accepted(f"req-{number}", "att-1", "run-1")


def settled(usd: UsdText) -> RequestEnd:
    usage = Usage(tokens={"in": 1, "out": 1})
    return RequestEnd(state=RequestState.SETTLED, ended_at=InstantMs(2_000), usage=usage, usd=usd)


def here() -> bool:
    return False


async def test_a_request_waits_for_the_cost_in_flight() -> None:
    ledger = MemoryLedger(SetClock())
    ledger.open_attempt(opening(limits=LIMITS))
    books = Books(ledger, SetClock(), Stop())
    await books.accept(row(1), "1.00", gone=here)
    second = asyncio.create_task(books.accept(row(2), "0.50", gone=here))
    third = asyncio.create_task(books.accept(row(3), "0.50", gone=here))
    await asyncio.wait([second, third], timeout=0.05)
    assert not second.done() and not third.done()
    await books.finish(row(1), settled("0.10"))
    await asyncio.gather(second, third)
    assert len(ledger.account(row(1).attempt_id).requests) == 3


async def test_what_ended_while_the_ledger_answered_is_no_ground_to_refuse() -> None:
    ledger = SlowLedger()
    books = Books(ledger, SetClock(), Stop())
    await books.accept(row(1), "1.00", gone=here)
    second = asyncio.create_task(books.accept(row(2), "0.50", gone=here))
    assert await asyncio.to_thread(ledger.decided.wait, 10)
    await books.finish(row(1), settled("0.10"))
    ledger.tell.set()
    await asyncio.wait_for(second, 10)
    assert len(ledger.account(row(1).attempt_id).requests) == 2


async def test_settled_cost_at_the_ceiling_refuses_whoever_waits() -> None:
    ledger = MemoryLedger(SetClock())
    ledger.open_attempt(opening(limits=LIMITS))
    books = Books(ledger, SetClock(), Stop())
    await books.accept(row(1), "1.00", gone=here)
    second = asyncio.create_task(books.accept(row(2), "0.01", gone=here))
    await books.finish(row(1), settled("1.00"))
    with pytest.raises(Refused, match="usd_per_attempt") as refused:
        await asyncio.wait_for(second, 10)
    assert refused.value.limit


async def test_what_nobody_here_will_end_is_not_waited_for() -> None:
    ledger = MemoryLedger(SetClock())
    ledger.open_attempt(opening(limits=LIMITS))
    ledger.accept(row(1), estimate_usd="1.00")
    books = Books(ledger, SetClock(), Stop())
    with pytest.raises(Refused, match="usd_per_attempt"):
        await asyncio.wait_for(books.accept(row(2), "0.01", gone=here), 10)


async def test_a_client_that_left_while_it_waited_is_not_accepted() -> None:
    ledger = MemoryLedger(SetClock())
    ledger.open_attempt(opening(limits=LIMITS))
    books = Books(ledger, SetClock(), Stop())
    await books.accept(row(1), "1.00", gone=here)
    second = asyncio.create_task(books.accept(row(2), "0.01", gone=lambda: True))
    await asyncio.wait([second], timeout=0.05)
    await books.finish(row(1), settled("0.10"))
    with pytest.raises(Refused, match="left"):
        await asyncio.wait_for(second, 10)
    assert len(ledger.account(row(1).attempt_id).requests) == 1
