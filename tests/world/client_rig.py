"""A real meter between real clients and the scripted provider, with a witness on the clients' side of the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from controller.domain.rate_card import RateBand, RateCard, RateRow, TokenClass
from controller.domain.usage import AttemptAccount, Dialect
from tests.world.processes import MODEL, MeterRig, short_directory
from tests.world.scripted_provider import ScriptedProvider
from tests.world.sdks import Call, Sdk
from tests.world.wire import Tap

PROVIDER_KEY = "provider-key-0123456789"
# Invented. Every class has a price of its own, so that no two can be confused unseen.
NANO_USD_PER_MILLION: dict[TokenClass, int] = {
    "in": 4_000_000_000,
    "read": 400_000_000,
    "w5m": 5_000_000_000,
    "w1h": 8_000_000_000,
    "w30m": 5_500_000_000,
    "w12h": 10_000_000_000,
    "out": 20_000_000_000,
}
CARD = RateCard(
    name="clients",
    rows=tuple(
        RateRow(
            provider=provider,
            model=MODEL,
            source="invented",
            retrieved_on="2026-01-01",
            bands=(RateBand(over=0, nano_usd_per_million=NANO_USD_PER_MILLION),),
        )
        for provider in ("anthropic", "openai", "gemini", "rehearsal")
    ),
)


@dataclass
class ClientRig:
    """`open` begins an attempt and returns how a client calls it; the other methods speak of the last one opened."""

    meter: MeterRig
    provider: ScriptedProvider
    wire: Tap

    def open(self, sdk: Sdk, *, stream: bool = False, retries: int = 0, **terms: Any) -> Call:
        """A new attempt in the SDK's dialect, with nothing on the wire and nothing received yet."""
        token = self.open_lane(sdk.provider, sdk.dialect, **terms)
        return Call(self.wire.url, token, MODEL, stream=stream, retries=retries)

    def open_lane(self, provider: str, dialect: Dialect, *, key: str = "the-key", **terms: Any) -> str:
        """As `open`, for a client that is not an SDK: the run token."""
        self.meter.fresh()
        self.wire.forget()
        self.provider.play()
        self.meter.open(provider=provider, dialect=dialect, key=key, **terms)
        return self.meter.token()

    def account(self) -> AttemptAccount:
        """The account of the attempt, once no request is open."""
        return self.meter.settled_account()


@contextmanager
def client_rig(**config: Any) -> Iterator[ClientRig]:
    """The three processes' worth of it: scripted provider, meter, witness. `config` changes the meter's."""
    with ExitStack() as stack:
        provider = stack.enter_context(ScriptedProvider())
        directory = stack.enter_context(short_directory())
        card, keys = directory / "clients-card.json", directory / "keys.json"
        card.write_text(CARD.model_dump_json())
        keys.touch(mode=0o600)
        keys.write_text(json.dumps({"the-key": PROVIDER_KEY}))
        settings = {
            "rate_card": str(card),
            "keys": str(keys),
            "upstreams": dict.fromkeys(("anthropic", "openai", "gemini", "rehearsal"), provider.url),
        }
        meter = stack.enter_context(MeterRig(directory, provider.url, **(settings | config)))
        wire = stack.enter_context(Tap(meter.socket))
        yield ClientRig(meter, provider, wire)
