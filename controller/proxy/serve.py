"""Start the meter process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from aiohttp import web

from controller.adapters.http_service import Stop, read_record, run_service
from controller.adapters.ledger_by_url import open_ledger
from controller.adapters.ledger_sql import SqlLedger
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.rate_card import RateCard
from controller.ports.ledger import MeterLife
from controller.proxy.app import Meter, log
from controller.proxy.config import MeterConfig, read_keys

# A ledger call crosses threads some ten times. Each time it waits for a busy event loop to let go of the interpreter,
# by default for 5 ms.
SWITCH_SECONDS: Final = 0.0005


def serve(config_path: Path) -> None:
    """Run the meter until SIGTERM; what a killed meter left open is brought to a final state first.

    Raises InvalidInput for a wrong configuration, PortOccupied for a second meter, LedgerUnavailable when the ledger
    can no longer be written.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    config = read_record(config_path, MeterConfig)
    keys = read_keys(Path(config.keys) if config.keys else None)
    card = read_record(Path(config.rate_card), RateCard)
    clock = SystemClock()
    entropy = SystemEntropy()
    ledger: SqlLedger | None = None

    async def build(stop: Stop) -> web.Application:
        nonlocal ledger
        # Inside the lock of run_service: only then does nobody else serve at this place.
        life = MeterLife(place=f"{os.uname().nodename}:{config.socket}", life=entropy.token_bytes(8).hex())
        ledger = open_ledger(config.ledger, clock, schema=config.ledger_schema, meter=life)
        unknown = ledger.recover(at=clock.now())
        if unknown:
            log.warning("recovered", unknown=unknown)
        meter = Meter(config, ledger=ledger, card=card, keys=keys, clock=clock, entropy=entropy, stop=stop)
        return meter.application()

    try:
        run_service(build, socket=Path(config.socket), drain_seconds=config.drain_seconds)
    finally:
        if ledger is not None:
            ledger.close()
