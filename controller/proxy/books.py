"""The meter's side of the ledger: blocking, durable calls made from the event loop, and what to do when one fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

import structlog

from controller.adapters.http_service import Stop
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.money import UsdText
from controller.domain.spend import ATTEMPT_CLOSED, ATTEMPT_EXPIRED, USD_IN_FLIGHT, USD_PER_ATTEMPT
from controller.domain.usage import MeteredRequest, Refusal, RequestState
from controller.errors import ControllerFault, LedgerUnavailable
from controller.meter.admission import Refused
from controller.ports.clock import Clock
from controller.ports.ledger import AttemptOpening, Ledger, RequestEnd

P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 64  # each waits for a group commit, so their number bounds how many requests share one fsync
REFUSALS_RECORDED_MAX: Final = 1_000  # per attempt; a harness that is refused more often tells us nothing new
FLIGHT_SECONDS_MAX: Final = 900.0
log = structlog.get_logger("meter")


class Books:
    """Asynchronous face of the Ledger port. After the first ledger error nothing is admitted and the service ends."""

    def __init__(self, ledger: Ledger, clock: Clock, stop: Stop) -> None:
        self._ledger = ledger
        self._clock = clock
        self._stop = stop
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="books")
        self._refused: Counter[AttemptId | None] = Counter()
        self._in_flight: Counter[LogicalRunId] = Counter()
        self._endings = 0
        self._changed = asyncio.Condition()  # of the two above
        self.healthy = True

    def close(self) -> None:
        """Wait for the running calls."""
        self._threads.shutdown(wait=True)

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))
        except LedgerUnavailable as error:
            if self.healthy:
                log.error("ledger failed; admitting nothing more", error=str(error))
            self.healthy = False
            self._stop.fail(error)
            raise

    async def find(self, token_sha256: str) -> AttemptOpening | None:
        """The open attempt of a token hash."""
        return await self._call(self._ledger.find_by_token, token_sha256)

    async def accept(self, row: MeteredRequest, estimate: UsdText, *, gone: Callable[[], bool]) -> None:
        """Accept durably. Raises Refused for a limit.

        While only the cost of requests in flight might fill the ceiling, waits for them instead of refusing: a refusal
        for a limit ends the attempt, and an estimate is no ground for that. `gone` tells that the client has left.
        """
        limit = await self._accepted(row, estimate, gone)
        if limit in (ATTEMPT_CLOSED, ATTEMPT_EXPIRED):
            raise Refused(403, f"this attempt accepts no more requests ({limit})")
        if limit is not None:
            raise Refused(403, f"the limit {limit} of this attempt is reached", limit=True)

    async def _accepted(self, row: MeteredRequest, estimate: UsdText, gone: Callable[[], bool]) -> str | None:
        deadline = asyncio.get_running_loop().time() + FLIGHT_SECONDS_MAX
        while True:
            endings = self._endings
            limit = await self._ask(row, estimate)
            if limit != USD_IN_FLIGHT:
                return limit
            # What filled the ceiling may have ended while the ledger answered; then the answer is out of date.
            try:
                async with asyncio.timeout_at(deadline), self._changed:
                    while self._endings == endings and self._in_flight[row.logical_run_id]:
                        await self._changed.wait()
            except TimeoutError:
                return USD_PER_ATTEMPT
            if self._endings == endings:
                return USD_PER_ATTEMPT
            if gone():
                raise Refused(400, "the client left before its request was accepted")

    async def _ask(self, row: MeteredRequest, estimate: UsdText) -> str | None:
        """Ask the ledger. A request counts as in flight from here on, so that no other one overlooks it."""
        self._in_flight[row.logical_run_id] += 1
        is_accepted = False
        try:
            limit = await self._call(self._ledger.accept, row, estimate_usd=estimate)
            is_accepted = limit is None
            return limit
        finally:
            if not is_accepted:
                await self._left(row)

    async def _left(self, row: MeteredRequest, *, ended: bool = False) -> None:
        """A request is in flight no longer: it `ended`, or it never was accepted."""
        async with self._changed:
            self._endings += ended
            self._in_flight[row.logical_run_id] -= 1
            if not self._in_flight[row.logical_run_id]:
                del self._in_flight[row.logical_run_id]
            self._changed.notify_all()

    async def mark_sent(self, row: MeteredRequest) -> None:
        """Durably note that bytes are about to leave."""
        await self._call(self._ledger.mark_sent, row.request_id)

    async def finish(self, row: MeteredRequest, end: RequestEnd) -> RequestEnd:
        """Record the one final state and return what was recorded.

        An answer whose provider message was settled before is an incident, and becomes UNKNOWN.
        """
        try:
            try:
                await self._call(self._ledger.finish, row.request_id, end)
            except ControllerFault as error:
                log.error("incident", request_id=row.request_id, error=str(error))
                end = RequestEnd(
                    state=RequestState.UNKNOWN, ended_at=end.ended_at, status=end.status, note=f"incident: {error}"
                )
                await self._call(self._ledger.finish, row.request_id, end)
        finally:
            await self._left(row, ended=True)
        return end

    async def refuse(self, attempt_id: AttemptId | None, refused: Refused) -> None:
        """Record a refusal, up to a bound per attempt; a refusal for a limit is always recorded once."""
        self._refused[attempt_id] += 1
        log.info("refused", attempt_id=attempt_id, status=refused.status, reason=refused.reason, limit=refused.limit)
        if self._refused[attempt_id] > REFUSALS_RECORDED_MAX and not refused.limit:
            return
        await self._call(
            self._ledger.refuse,
            Refusal(
                attempt_id=attempt_id,
                at=self._clock.now(),
                reason=refused.reason,
                status=refused.status,
                limit=refused.limit,
            ),
        )


def request_id_of(token: bytes) -> RequestId:
    """The identity of one received HTTP request: ours alone, since no provider has one for inference."""
    return RequestId(f"req-{token.hex()}")
