"""The result API as an aiohttp application: one verb, one path form, nothing to read."""

from __future__ import annotations

import asyncio
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal

import structlog
from aiohttp import web
from pydantic import Field

from controller.adapters.artifacts_fs import FsArtifacts
from controller.adapters.http_service import Stop, read_record, run_service
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId
from controller.domain.record import Record
from controller.errors import DiskFull, InvalidInput, LedgerUnavailable
from controller.ports.clock import Clock
from controller.ports.ledger import Artifacts, UploadGrant

BODY_BYTES_MAX: Final = 64 * 2**20
BODY_SECONDS_MAX: Final = 300.0
THREADS: Final = 4  # an upload is one fsynced write; more at once only seek more
PATH: Final = re.compile(r"/results/(?P<attempt>[a-z0-9-]{1,63})/(?P<name>[a-z0-9.-]{1,100})")
log = structlog.get_logger("results")


class ResultsConfig(Record):
    """Everything the result API is told. Paths are absolute."""

    schema_version: Literal["fairtrial.results/1"] = "fairtrial.results/1"
    socket: str
    artifacts: str  # directory of the stored files
    grants: str  # SQLite file shared with the controller
    drain_seconds: float = Field(default=12.0, ge=0)


class Denied(Exception):
    """An upload that is not stored."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Results:
    """Handles every request of the process. 500 means "not stored, send it again"; every other refusal is final."""

    def __init__(self, artifacts: Artifacts, clock: Clock, stop: Stop) -> None:
        self._artifacts = artifacts
        self._clock = clock
        self._stop = stop
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="results")

    def application(self) -> web.Application:
        """The aiohttp application; it answers `GET /healthz` and `PUT /results/<attempt>/<name>`."""
        application = web.Application(client_max_size=BODY_BYTES_MAX)
        application.router.add_get("/healthz", self._health, allow_head=False)
        application.router.add_route("*", "/{path:.*}", self._handle)
        return application

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            return web.json_response(await self._put(request))
        except Denied as denied:
            log.info("denied", status=denied.status, reason=denied.reason)
            return web.json_response({"error": denied.reason}, status=denied.status)

    async def _put(self, request: web.Request) -> dict[str, str | int]:
        found = PATH.fullmatch(request.raw_path)
        if request.method != "PUT" or found is None:
            raise Denied(403, "only PUT /results/<attempt>/<name> is served")
        grant = await self._grant(request, AttemptId(found["attempt"]), found["name"])
        data = await _body(request, grant.bytes_max)
        try:
            stored = await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: self._artifacts.store(grant, data, at=self._clock.now())
            )
        except InvalidInput as error:
            raise Denied(403, str(error)) from None
        except (DiskFull, OSError) as error:
            log.error("not stored", attempt_id=grant.attempt_id, name=grant.name, error=str(error))
            raise Denied(500, "the artifact could not be stored durably; send it again") from None
        except LedgerUnavailable as error:
            self._stop.fail(error)
            raise Denied(500, "the artifact could not be stored durably; send it again") from None
        log.info("stored", attempt_id=grant.attempt_id, name=stored.name, digest=stored.digest, bytes=stored.bytes)
        return {"digest": stored.digest, "bytes": stored.bytes}

    async def _grant(self, request: web.Request, attempt_id: AttemptId, name: str) -> UploadGrant:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Denied(401, "no upload token was sent")
        token_sha256 = hashlib.sha256(token.strip().encode()).hexdigest()
        try:
            grant = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._artifacts.find_grant, attempt_id, name, token_sha256
            )
        except LedgerUnavailable as error:
            self._stop.fail(error)
            raise Denied(500, "the grants can't be read; send it again") from None
        if grant is None:
            raise Denied(403, "no open grant covers this name with this token")
        return grant


async def _body(request: web.Request, bytes_max: int) -> bytes:
    if (request.content_length or 0) > bytes_max:
        raise Denied(403, f"the artifact is larger than the granted {bytes_max} bytes")
    parts: list[bytes] = []
    total = 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.content.iter_any():
                total += len(chunk)
                if total > min(bytes_max, BODY_BYTES_MAX):
                    raise Denied(403, f"the artifact is larger than the granted {bytes_max} bytes")
                parts.append(chunk)
    except (OSError, TimeoutError, web.HTTPException):
        raise Denied(400, "the artifact did not arrive whole") from None
    return b"".join(parts)


def serve(config_path: Path) -> None:
    """Run the result API until SIGTERM.

    Raises InvalidInput for a wrong configuration, PortOccupied for a second instance, LedgerUnavailable when grants can
    no longer be read or written.
    """
    config = read_record(config_path, ResultsConfig)
    clock = SystemClock()
    artifacts = FsArtifacts(Path(config.artifacts), Path(config.grants), clock)

    async def build(stop: Stop) -> web.Application:
        return Results(artifacts, clock, stop).application()

    try:
        run_service(build, socket=Path(config.socket), drain_seconds=config.drain_seconds)
    finally:
        artifacts.close()
