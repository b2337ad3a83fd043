"""Run tokens: how strong they are, where they may come from, and what is kept of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from controller.adapters.http_service import Stop
from controller.adapters.system_entropy import SystemEntropy
from controller.conductor.world import TOKEN_KINDS
from controller.domain.ids import AttemptId
from controller.domain.usage import Dialect
from controller.meter.admission import Refused, find_route, token_of
from controller.ports.ledger import AttemptOpening
from controller.proxy.app import Meter
from controller.proxy.config import MeterConfig
from controller.wiring.conducting import SECRET_BYTES
from tests.world.clock import SetClock
from tests.world.ledger import MemoryLedger
from tests.world.processes import CARD, opening
from tests.world.simulation import Simulation

GEMINI = "/v1beta/models/m:generateContent"
PATHS: dict[Dialect, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": GEMINI,
}


def test_a_token_holds_256_bits_and_belongs_to_one_attempt_and_generation(tmp_path: Path) -> None:
    world = Simulation(tmp_path).world()
    attempts = [("att-1", 1), ("att-1", 2), ("att-2", 1)]
    tokens = [world.token(kind, AttemptId(name), generation) for kind in TOKEN_KINDS for name, generation in attempts]
    assert len(set(tokens)) == len(tokens) == 9
    assert all(re.fullmatch(r"(rt|up|canary)_[0-9a-f]{64}", token) for token in tokens)
    assert SECRET_BYTES * 8 == 256  # what they derive from is no weaker


class LooseLedger(MemoryLedger):
    """A store whose look-up takes any digest for the one it knows, as one that ignores letter case might."""

    def __init__(self, known: AttemptOpening | None) -> None:
        super().__init__(SetClock())
        self.known = known
        self.asked: list[str] = []

    def find_by_token(self, token_sha256: str) -> AttemptOpening | None:
        self.asked.append(token_sha256)
        return self.known


@asynccontextmanager
async def meter(ledger: MemoryLedger) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    config = MeterConfig(socket="/none", ledger="/none", rate_card="/none", upstreams={"rehearsal": "unix:/none"})
    app = Meter(config, ledger=ledger, card=CARD, keys={}, clock=SetClock(), entropy=SystemEntropy(), stop=Stop())
    async with TestClient(TestServer(app.application())) as client:
        yield client


@pytest.mark.parametrize(("token", "status"), [("token-1", 200), ("token-2", 401), ("TOKEN-1", 401)])
async def test_only_the_exact_token_opens_its_attempt(token: str, status: int) -> None:
    ledger = LooseLedger(opening())
    async with meter(ledger) as client:
        answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == status
    # The store is asked by digest: the token itself never gets there.
    assert ledger.asked == [hashlib.sha256(token.encode()).hexdigest()]


@pytest.mark.parametrize("dialect", sorted(PATHS))
def test_only_gemini_takes_the_token_from_the_query(dialect: Dialect) -> None:
    if dialect == "gemini":
        assert find_route("POST", PATHS[dialect], "key=t").dialect == "gemini"
        assert token_of([], "key=t") == "t"
        return
    with pytest.raises(Refused, match="'key'") as refused:
        find_route("POST", PATHS[dialect], "key=t")
    assert refused.value.status == 400
