"""Gemini through the meter to the scripted model: every form of call, and where the run token does not go."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from controller.adapters import rehearsal
from controller.adapters.http_service import Stop
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.money import usd_to_text
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.usage import RequestState, ZeroBillProof
from controller.proxy.app import Meter
from controller.proxy.config import MeterConfig
from tests.unit.adapters.rehearsal.reading import Json, read_gemini, script, whole_gemini
from tests.world.clock import SetClock
from tests.world.ledger import MemoryLedger
from tests.world.processes import MODEL, opening

TOKEN = "run-token-that-nobody-may-see"
KEY = "rehearsal:calc:codex:1:1"
ROOT = f"/v1beta/models/{MODEL}"
BODY: Json = {
    "contents": [{"role": "user", "parts": [{"text": "Background. " * 600}]}],
    "generationConfig": {"maxOutputTokens": 100},
}
CARD = RateCard(
    name="test",
    rows=(
        RateRow(
            provider="rehearsal",
            model=MODEL,
            source="invented",
            retrieved_on="2026-01-01",
            bands=(RateBand(over=0, nano_usd_per_million={"in": 2 * 10**9, "read": 2 * 10**8, "out": 12 * 10**9}),),
        ),
    ),
)


@dataclass
class Rig:
    """A meter between a client and the scripted model, which notes how it was called."""

    http: TestClient[Any, Any]
    ledger: MemoryLedger
    calls: list[tuple[str, dict[str, str]]]

    @property
    def account(self) -> Any:
        """An answer may be with the client before its request has ended; all have once the meter is down."""
        return self.ledger.account(opening().attempt_id)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    calls: list[tuple[str, dict[str, str]]] = []

    @web.middleware
    async def note(request: web.Request, handler: Any) -> web.StreamResponse:
        calls.append((request.raw_path, {name.lower(): value for name, value in request.headers.items()}))
        response: web.StreamResponse = await handler(request)
        return response

    provider = rehearsal.app({"calc": script()}, "seed")
    provider.middlewares.append(note)
    clock = SetClock()
    ledger = MemoryLedger(clock)
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    ledger.open_attempt(opening(dialect="gemini", key=KEY, token_sha256=digest))
    async with TestServer(provider) as upstream:
        address = str(upstream.make_url("")).rstrip("/")
        config = MeterConfig(socket="/s", ledger="/l", rate_card="/c", upstreams={"rehearsal": address})
        meter = Meter(config, ledger=ledger, card=CARD, keys={}, clock=clock, entropy=SystemEntropy(), stop=Stop())
        async with TestClient(TestServer(meter.application())) as http:
            yield Rig(http, ledger, calls)


def cost(usage: Json) -> str:
    """By the card above: 2 dollars in, 0.2 from the cache and 12 out, per million tokens."""
    cached = usage.get("cachedContentTokenCount", 0)
    plain, out = usage["promptTokenCount"] - cached, usage["candidatesTokenCount"]
    return usd_to_text(Fraction(plain * 20 + cached * 2 + out * 120, 10**7))


@pytest.mark.parametrize("call", ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"])
async def test_every_form_of_call_is_settled_exactly(call: str) -> None:
    async with rig() as running:
        response = await running.http.post(f"{ROOT}:{call}", json=BODY, headers={"x-goog-api-key": TOKEN})
        raw = await response.read()
        assert response.status == 200, raw
        answer = whole_gemini(await response.json()) if call == "generateContent" else read_gemini(raw)
    (request,) = running.account.requests
    assert (request.state, request.observed_model, request.dialect) == (RequestState.SETTLED, MODEL, "gemini")
    assert (request.served_tier, request.served_speed, request.served_geo) == ("standard", "standard", "global")
    assert request.provider_message_id == answer.reply_id
    assert request.usd == cost(answer.usage)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"x-goog-api-key": TOKEN}, ""),
        ({"Authorization": f"Bearer {TOKEN}"}, ""),
        ({"x-api-key": TOKEN}, ""),
        ({}, f"key={TOKEN}"),
        ({"x-goog-api-key": TOKEN}, f"%6Bey={TOKEN}"),
    ],
    ids=["own header", "bearer", "x-api-key", "query", "query, escaped"],
)
async def test_the_run_token_stops_at_the_meter(headers: dict[str, str], query: str) -> None:
    with structlog.testing.capture_logs() as lines:
        async with rig() as running:
            target = f"{ROOT}:streamGenerateContent?alt=sse&{query}".rstrip("&")
            response = await running.http.post(target, json=BODY, headers=headers)
            assert response.status == 200
            await response.read()
            ((path, sent),) = running.calls
    assert path == f"{ROOT}:streamGenerateContent?alt=sse"
    assert sent["x-goog-api-key"] == KEY and "authorization" not in sent and "x-api-key" not in sent
    assert TOKEN not in str(running.calls) + str(lines) + str(running.account)


async def test_counting_is_free_and_apart() -> None:
    async with rig() as running:
        response = await running.http.post(
            f"{ROOT}:countTokens", json={"contents": BODY["contents"]}, params={"key": TOKEN}
        )
        assert response.status == 200 and (await response.json())["totalTokens"] > 1_000
    (request,) = running.account.requests
    assert (request.counts, request.state, request.usd) == (False, RequestState.ZERO_BILL, "0")
    assert request.zero_bill_proof is ZeroBillProof.DOCUMENTED_RULE


@pytest.mark.parametrize("path", ["/v1beta/models", "/v1/models"])
async def test_the_model_list_is_the_lane_and_is_answered_here(path: str) -> None:
    async with rig() as running:
        response = await running.http.get(path, params={"key": TOKEN, "pageSize": "5"})
        listed = await response.json()
    assert [model["name"] for model in listed["models"]] == [f"models/{MODEL}"]
    assert running.calls == [] and running.account.requests == ()


@pytest.mark.parametrize(
    ("path", "headers", "extra", "status", "name"),
    [
        (f"{ROOT}:generateContent", {}, {}, 401, "UNAUTHENTICATED"),
        (f"{ROOT}:generateContent?key=other", {"x-goog-api-key": TOKEN}, {}, 401, "UNAUTHENTICATED"),
        (f"{ROOT}:generateContent", {"x-goog-api-key": "wrong"}, {}, 401, "UNAUTHENTICATED"),
        (f"{ROOT}:embedContent", {"x-goog-api-key": TOKEN}, {}, 404, "NOT_FOUND"),
        ("/v1beta/models/other:generateContent", {"x-goog-api-key": TOKEN}, {}, 400, "INVALID_ARGUMENT"),
        (
            f"{ROOT}:generateContent",
            {"x-goog-api-key": TOKEN},
            {"tools": [{"googleSearch": {}}]},
            400,
            "INVALID_ARGUMENT",
        ),
        (
            f"{ROOT}:generateContent",
            {"x-goog-api-key": TOKEN, "x-goog-fieldmask": "candidates"},
            {},
            400,
            "INVALID_ARGUMENT",
        ),
        ("/v1/messages", {"x-api-key": TOKEN}, {}, 400, None),
    ],
)
async def test_refusals_are_worded_as_google_words_them(
    path: str, headers: dict[str, str], extra: Json, status: int, name: str | None
) -> None:
    async with rig() as running:
        response = await running.http.post(path, json=BODY | extra, headers=headers)
        error = (await response.json())["error"]
        assert response.status == status and error["message"].startswith("fairtrial meter: ")
        assert (error.get("code"), error.get("status")) == ((status, name) if name else (None, None))
        assert running.calls == [] and running.account.requests == ()
