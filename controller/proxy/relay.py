"""One accepted request on its way to the provider and back: bytes pass untouched, a copy is read."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    StreamReader,
    TCPConnector,
    UnixConnector,
    web,
)
from multidict import CIMultiDict

from controller.domain.rate_card import RateCard
from controller.domain.usage import MeteredRequest
from controller.errors import LedgerUnavailable
from controller.meter.admission import Admitted, Refused, Route, refusal_body
from controller.meter.dialects import Reader
from controller.meter.headers import request_headers, response_headers
from controller.meter.rules import Ending, Exchange, LaneTerms, ending, raw_usage_text
from controller.ports.clock import Clock
from controller.ports.ledger import AttemptOpening, RequestEnd
from controller.proxy.books import Books
from controller.proxy.config import MeterConfig
from controller.proxy.copy import Copy

CONNECT_SECONDS_MAX: Final = 30.0
POOLED_SECONDS: Final = 10.0  # providers keep idle connections longer; a reused dead one would cost an UNKNOWN
BODY_BYTES_DIRECT: Final = 2**20
READ_BYTES_LEAST: Final = 2**14  # the copy is read by so much at once, which costs half of reading every chunk alone
log = structlog.get_logger("meter")


@dataclass(frozen=True, slots=True)
class Job:
    """Everything about one accepted request."""

    row: MeteredRequest
    opening: AttemptOpening
    route: Route
    query: str
    admitted: Admitted
    key: str

    @property
    def lane(self) -> LaneTerms:
        """What decides how the answer is priced."""
        opening = self.opening
        return LaneTerms(opening.provider, opening.model, opening.observed_models, opening.rate_tier)


class Relay:
    """Forwards accepted requests. A pump outlives its client, so that what was asked for is always accounted for."""

    def __init__(self, config: MeterConfig, card: RateCard, books: Books, clock: Clock) -> None:
        self._config = config
        self._card = card
        self._books = books
        self._clock = clock
        self._sessions: dict[str, tuple[ClientSession, str]] = {}
        self._pumps: set[asyncio.Task[web.StreamResponse]] = set()

    async def open(self) -> None:
        """Make one client session per provider."""
        timeout = ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=self._config.idle_seconds, ceil_threshold=1e9
        )
        for provider, address in self._config.upstreams.items():
            connector: TCPConnector | UnixConnector
            if address.startswith("unix:"):
                connector = UnixConnector(address.removeprefix("unix:"), limit=0, keepalive_timeout=POOLED_SECONDS)
                base = "http://upstream"
            else:
                connector, base = TCPConnector(limit=0, keepalive_timeout=POOLED_SECONDS), address
            session = ClientSession(
                connector=connector,
                timeout=timeout,
                auto_decompress=False,
                trust_env=False,
                raise_for_status=False,
                skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
                read_bufsize=2**18,
            )
            self._sessions[provider] = (session, base)

    async def drain(self, seconds: float) -> None:
        """Let the pumps end for a while, then cut the rest; their requests become UNKNOWN."""
        if self._pumps:
            _, late = await asyncio.wait(self._pumps, timeout=seconds)
            for pump in late:
                pump.cancel()
            if late:
                await asyncio.wait(late)

    async def close(self) -> None:
        """Close the client sessions."""
        for session, _ in self._sessions.values():
            await session.close()

    async def forward(self, request: web.Request, job: Job) -> web.StreamResponse:
        """Send the request, pass the answer on, and record its one final state."""
        pump = asyncio.create_task(self._pump(request, job))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return await asyncio.shield(pump)

    async def _pump(self, request: web.Request, job: Job) -> web.StreamResponse:
        passing = _Passing(request, self._config.client_stall_seconds)
        exchange, reader = Exchange(connected=False, fault="the meter stopped"), None
        try:
            await self._books.mark_sent(job.row)
            exchange, reader = await self._exchange(job, passing)
        except asyncio.CancelledError:
            exchange = Exchange(connected=True, fault="the meter was stopped before the answer was final")
        final = ending(
            exchange,
            reader,
            job.lane,
            self._card,
            free=not job.row.counts,
            asks_lifetime=job.admitted.asks_lifetime,
        )
        try:
            recorded = await self._books.finish(job.row, self._end(job, exchange, final))
        except LedgerUnavailable:
            passing.abandon()
            raise
        log.info(
            "ended",
            request_id=job.row.request_id,
            attempt_id=job.row.attempt_id,
            status=exchange.status,
            state=recorded.state,
            usd=recorded.usd,
            note=recorded.note,
        )
        return await passing.close(exchange, job)

    async def _exchange(self, job: Job, passing: _Passing) -> tuple[Exchange, Reader | None]:
        session, base = self._sessions[job.opening.provider]
        body = job.admitted.body
        dialect = job.opening.dialect
        status: int | None = None
        copy: Copy | None = None
        try:
            async with session.post(
                base + job.route.path + (f"?{job.query}" if job.query else ""),
                data=body if len(body) < BODY_BYTES_DIRECT else io.BytesIO(body),
                headers=CIMultiDict(request_headers(passing.request.headers.items(), dialect=dialect, key=job.key)),
                allow_redirects=False,
            ) as upstream:
                status = upstream.status
                copy = Copy(dialect, upstream.headers)
                await passing.start(upstream)
                await _pass(upstream.content, passing, copy)
                copy.end()
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            return Exchange(connected=False, fault=type(error).__name__), None
        except (ClientError, TimeoutError, OSError) as error:
            fault = f"the provider's answer broke off ({type(error).__name__})"
            return Exchange(connected=True, status=status, fault=fault), copy.reader if copy else None
        except Exception as error:
            # A defect of ours must not leave a request without an ending.
            log.exception("defect", request_id=job.row.request_id)
            fault = f"the meter failed ({type(error).__name__})"
            return Exchange(connected=True, status=status, fault=fault), None
        return Exchange(connected=True, status=status, ended_well=True, fault=copy.fault), copy.reader

    def _end(self, job: Job, exchange: Exchange, final: Ending) -> RequestEnd:
        reading = final.reading
        served = reading if reading is not None and reading.usage is not None else None
        return RequestEnd(
            state=final.state,
            ended_at=max(self._clock.now(), job.row.accepted_at),
            status=exchange.status,
            provider_message_id=reading.message_id if reading else None,
            observed_model=reading.model if reading else None,
            served_tier=served.tier if served else None,
            served_speed=served.speed if served else None,
            served_geo=served.geo if served else None,
            usage=final.usage,
            usd=final.usd,
            zero_bill_proof=final.proof,
            raw_usage_json=raw_usage_text(reading.raw) if reading else "",
            note=final.note,
        )


async def _pass(content: StreamReader, passing: _Passing, copy: Copy) -> None:
    """Send every chunk on as it comes, and let the copy read all that came, however the answer ends."""
    held: list[bytes] = []
    held_bytes = 0
    try:
        async for chunk in content.iter_any():
            await passing.write(chunk)
            held.append(chunk)
            held_bytes += len(chunk)
            if held_bytes >= READ_BYTES_LEAST:
                copy.feed(b"".join(held))
                held, held_bytes = [], 0
    finally:
        copy.feed(b"".join(held))


class _Passing:
    """The client's side of an answer. Once the client has left or stalls, writing becomes a no-op."""

    def __init__(self, request: web.Request, stall_seconds: float) -> None:
        self.request = request
        self._stall_seconds = stall_seconds
        self._response: web.StreamResponse | None = None
        self._present = True
        self._loop = asyncio.get_running_loop()
        self._writing_since: float | None = None
        self._watch = self._loop.call_later(stall_seconds, self._check_stall)

    def _check_stall(self) -> None:
        # One timer per answer instead of one per chunk: a timeout around every write costs as much as reading the copy.
        if self._writing_since is not None and self._loop.time() - self._writing_since >= self._stall_seconds:
            self.cut()
        else:
            self._watch = self._loop.call_later(self._stall_seconds / 2, self._check_stall)

    async def start(self, upstream: ClientResponse) -> None:
        """Send the status and the headers on."""
        pairs: Mapping[str, str] = upstream.headers
        response = web.StreamResponse(
            status=upstream.status, reason=upstream.reason, headers=CIMultiDict(response_headers(pairs.items()))
        )
        if upstream.content_length is not None:
            response.content_length = upstream.content_length
        self._response = response
        await self._guarded(response.prepare(self.request))

    async def write(self, chunk: bytes) -> None:
        """Send one chunk on, unbuffered."""
        if self._present and self._response is not None:
            await self._guarded(self._response.write(chunk))

    async def _guarded(self, sending: Awaitable[object]) -> None:
        self._writing_since = self._loop.time()
        try:
            await sending
        except (OSError, RuntimeError, ValueError):  # the last one for a header that may not be sent on
            self._present = False
            self.cut()
        finally:
            self._writing_since = None

    def cut(self) -> None:
        """End the connection in a way that no client takes for a whole answer."""
        if self.request.transport is not None:
            self.request.transport.abort()

    def abandon(self) -> None:
        """End the connection without an ending, when what was answered could not be recorded."""
        self._watch.cancel()
        self.cut()

    async def close(self, exchange: Exchange, job: Job) -> web.StreamResponse:
        """End the answer as the provider's ended: well, broken off, or never begun."""
        try:
            return await self._closed(exchange, job)
        finally:
            self._watch.cancel()

    async def _closed(self, exchange: Exchange, job: Job) -> web.StreamResponse:
        if self._response is None:
            # Not a refusal of ours but a provider that could not be reached; harnesses may treat it as the 5xx it is.
            failure = Refused(502, "the provider gave no answer")
            return web.json_response(refusal_body(job.opening.dialect, failure), status=502)
        if not exchange.ended_well:
            self.cut()
        elif self._present:
            await self._guarded(self._response.write_eof())
        return self._response
