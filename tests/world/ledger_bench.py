"""One ledger of either kind, a provider, and real meters that come and go."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from controller.adapters.ledger_by_url import open_ledger
from controller.adapters.ledger_sql import SqlLedger
from controller.adapters.system_clock import SystemClock
from controller.domain.ids import AttemptId
from controller.domain.usage import AttemptAccount
from tests.world.killed_meter import KilledMeter, KillPoint
from tests.world.processes import CARD, MODEL, Answer, call, opening
from tests.world.upstream import ScriptedUpstream

END_SECONDS_MAX = 30.0


@dataclass
class Bench:
    """One ledger, the provider, and meters that come and go."""

    directory: Path
    upstream: ScriptedUpstream
    location: str
    schema: str

    def __post_init__(self) -> None:
        (self.directory / "card.json").write_text(CARD.model_dump_json())
        self.config = self.directory / "meter.json"
        self.socket = self.directory / "meter.sock"
        settings = {
            "socket": str(self.socket),
            "ledger": self.location,
            "ledger_schema": self.schema,
            "rate_card": str(self.directory / "card.json"),
            "upstreams": {"rehearsal": self.upstream.url},
        }
        self.config.write_text(json.dumps(settings))
        self.open()

    def open(self, number: int = 1, **terms: Any) -> None:
        """Open an attempt."""
        with contextlib.closing(self.ledger()) as ledger:
            ledger.open_attempt(opening(number, **terms))

    def ledger(self) -> SqlLedger:
        """The ledger as the controller has it."""
        return open_ledger(self.location, SystemClock(), schema=self.schema)

    def meter(self, point: KillPoint | None = None) -> KilledMeter:
        """Start a meter, which may die while it starts."""
        return KilledMeter(self.config, self.socket, point)

    def ask(self, number: int = 1, **body: str) -> Answer | None:
        """One request of an attempt; None when the meter gave no whole answer."""
        payload = json.dumps({"model": MODEL, "messages": [], "max_tokens": 100} | body).encode()
        headers = {"x-api-key": f"token-{number}"}
        try:
            return call(self.socket, "POST", "/v1/chat/completions", body=payload, headers=headers)
        except (OSError, HTTPException):
            return None

    def ask_to_the_end(self) -> None:
        """One request, until its end is in the ledger, which may be after its answer is with the client."""
        self.ask()
        deadline = time.monotonic() + END_SECONDS_MAX
        with contextlib.closing(self.ledger()) as ledger:
            while any(row.ended_at is None for row in ledger.account(AttemptId("att-1")).requests):
                assert time.monotonic() < deadline, "the request stayed open"
                time.sleep(0.01)

    def account(self, number: int = 1) -> AttemptAccount:
        """What the ledger says of an attempt."""
        with contextlib.closing(self.ledger()) as ledger:
            return ledger.account(AttemptId(f"att-{number}"))

    def account_after_restart(self, number: int = 1) -> AttemptAccount:
        """Start a meter that doesn't die, and end it; what the ledger says then."""
        meter = self.meter()
        meter.wait_ready()
        meter.stop()
        return self.account(number)

    def set_clock_back(self, seconds: int) -> None:
        """Let the meter's wall clock show that much less than this machine's from now on, or more when negative."""
        self.config.with_suffix(".clock").write_text(str(-seconds * 1000))

    def read_log(self) -> str:
        """What every meter so far wrote."""
        return self.config.with_suffix(".log").read_text()
