"""The meter as an aiohttp application: authenticate, admit, accept, forward."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog
from aiohttp import web

from controller.adapters.http_service import Stop
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.plan import REHEARSAL_PROVIDER
from controller.domain.rate_card import RateCard
from controller.domain.usage import Dialect, MeteredRequest, RequestState
from controller.errors import LedgerUnavailable, UnpricedUsage
from controller.evidence.canonical import canonical
from controller.meter.admission import (
    BODY_BYTES_MAX,
    Admitted,
    Operation,
    Refused,
    Route,
    admit,
    dialect_of_path,
    find_route,
    refusal_body,
    token_of,
    without_key,
)
from controller.meter.headers import check_headers
from controller.meter.rules import estimate_usd
from controller.ports.clock import Clock
from controller.ports.entropy import Entropy
from controller.ports.ledger import AttemptOpening, Ledger
from controller.proxy.books import Books, request_id_of
from controller.proxy.config import MeterConfig
from controller.proxy.listing import model_listing
from controller.proxy.relay import Job, Relay

BODY_SECONDS_MAX: Final = 120.0
log = structlog.get_logger("meter")


class Meter:
    """Handles every request of the process."""

    def __init__(
        self,
        config: MeterConfig,
        *,
        ledger: Ledger,
        card: RateCard,
        keys: Mapping[str, str],
        clock: Clock,
        entropy: Entropy,
        stop: Stop,
    ) -> None:
        self._config = config
        self._card = card
        self._card_digest = sha256_digest(canonical(card))
        self._keys = keys
        self._clock = clock
        self._entropy = entropy
        self._books = Books(ledger, clock, stop)
        self._relay = Relay(config, card, self._books, clock)

    def application(self) -> web.Application:
        """The aiohttp application; it answers `GET /healthz` and the routes of `meter.admission`."""
        application = web.Application(client_max_size=BODY_BYTES_MAX)
        application.router.add_get("/healthz", self._health, allow_head=False)
        application.router.add_route("*", "/{path:.*}", self._handle)
        application.on_shutdown.append(self._drain)
        application.cleanup_ctx.append(self._running)
        return application

    async def _running(self, _: web.Application) -> AsyncIterator[None]:
        await self._relay.open()
        yield
        await self._relay.close()
        self._books.close()

    async def _drain(self, _: web.Application) -> None:
        await self._relay.drain(self._config.drain_seconds)

    async def _health(self, _: web.Request) -> web.Response:
        found = {"ok": self._books.healthy, "rate_card_digest": self._card_digest}
        return web.json_response(found, status=200 if self._books.healthy else 503)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        opening: AttemptOpening | None = None
        path, _, query = request.raw_path.partition("?")
        dialect = dialect_of_path(path)
        try:
            if not self._books.healthy:
                raise Refused(400, "the ledger can't be written, so nothing is admitted")
            route = find_route(request.method, path, query)
            dialect = route.dialect or dialect
            if route.operation is Operation.PROBE:
                return web.Response()
            opening = await self._attempt_of(request, query)
            if route.operation is Operation.LIST_MODELS:
                return web.json_response(model_listing(opening))
            return await self._infer(request, route, without_key(query), opening)
        except Refused as refused:
            return await self._refuse(refused, dialect, opening.attempt_id if opening else None)
        except LedgerUnavailable:
            return _answer(dialect, Refused(400, "the ledger can't be written, so nothing is admitted"))
        except Exception:
            # Never 5xx: a harness would send the request again, and the defect would still be there.
            log.exception("defect", attempt_id=opening.attempt_id if opening else None)
            return _answer(dialect, Refused(400, "the meter failed"))

    async def _refuse(
        self, refused: Refused, dialect: Dialect | None, attempt_id: AttemptId | None
    ) -> web.StreamResponse:
        if self._books.healthy:
            try:
                await self._books.refuse(attempt_id, refused)
            except LedgerUnavailable:
                log.error("a refusal could not be recorded", attempt_id=attempt_id, reason=refused.reason)
        return _answer(dialect, refused)

    async def _attempt_of(self, request: web.Request, query: str) -> AttemptOpening:
        token = token_of(request.headers.items(), query)
        sent = hashlib.sha256(token.encode()).hexdigest()
        # How long the look-up takes tells about digests at most, and nobody can choose the digest of what they send.
        # The comparison takes the same time for all, and holds every kind of store to an exact match.
        opening = await self._books.find(sent)
        if opening is None or not hmac.compare_digest(opening.token_sha256, sent):
            raise Refused(401, "the run token is not known, or its attempt has ended")
        return opening

    async def _infer(
        self, request: web.Request, route: Route, query: str, opening: AttemptOpening
    ) -> web.StreamResponse:
        check_headers(request.headers.items())
        raw = await _body(request)
        betas = ",".join(request.headers.getall("anthropic-beta", ()))
        admitted = admit(route, raw, model=opening.model, dialect=opening.dialect, betas=betas)
        job = Job(
            row=self._row(request, raw, admitted, opening, counts=route.operation is Operation.INFER),
            opening=opening,
            route=route,
            query=query,
            admitted=admitted,
            key=self._key(opening),
        )
        if opening.provider not in self._config.upstreams:
            raise Refused(400, f"the meter has no upstream for provider {opening.provider}")
        try:
            bound = estimate_usd(job.lane, self._card, body_bytes=len(raw), output_tokens=admitted.output_tokens)
        except UnpricedUsage as error:
            raise Refused(400, f"this lane can't be priced: {error}") from None
        await self._books.accept(job.row, bound if job.row.counts else "0", gone=lambda: request.transport is None)
        log.info("accepted", request_id=job.row.request_id, attempt_id=opening.attempt_id, path=route.path)
        return await self._relay.forward(request, job)

    def _row(
        self, request: web.Request, raw: bytes, admitted: Admitted, opening: AttemptOpening, *, counts: bool
    ) -> MeteredRequest:
        notes = [f"set {change}" for change in admitted.changes]
        retry = request.headers.get("x-stainless-retry-count", "0")
        if retry.isascii() and retry.isdigit() and len(retry) < 4 and int(retry):
            notes.append(f"the harness calls it retry {retry}")
        return MeteredRequest(
            request_id=request_id_of(self._entropy.token_bytes(16)),
            attempt_id=opening.attempt_id,
            logical_run_id=opening.logical_run_id,
            sequence=1,
            dialect=opening.dialect,
            model=opening.model,
            state=RequestState.ACCEPTED,
            accepted_at=self._clock.now(),
            ended_at=None,
            status=None,
            body_digest=sha256_digest(raw),
            provider_message_id=None,
            observed_model=None,
            usage=None,
            usd=None,
            zero_bill_proof=None,
            note="; ".join(notes),
            counts=counts,
        )

    def _key(self, opening: AttemptOpening) -> str:
        if opening.provider == REHEARSAL_PROVIDER:
            return opening.provider_key_name
        try:
            return self._keys[opening.provider_key_name]
        except KeyError:
            raise Refused(400, "the meter has no provider key for this attempt") from None


async def _body(request: web.Request) -> bytes:
    if any(value.lower() != "identity" for value in request.headers.getall("Content-Encoding", ())):
        raise Refused(400, "an encoded request body can't be checked")
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Refused(400, f"the body is larger than {BODY_BYTES_MAX} bytes") from None
    except TimeoutError:
        raise Refused(400, f"the body did not arrive within {BODY_SECONDS_MAX:.0f} seconds") from None
    except (OSError, web.HTTPException):
        raise Refused(400, "the body did not arrive whole") from None


def _answer(dialect: Dialect | None, refused: Refused) -> web.Response:
    return web.json_response(refusal_body(dialect, refused), status=refused.status)
