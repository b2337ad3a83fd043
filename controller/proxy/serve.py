"""Start the meter process."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from controller.adapters.http_service import Stop, read_record, run_service
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.adapters.system_clock import SystemClock
from controller.adapters.system_entropy import SystemEntropy
from controller.domain.rate_card import RateCard
from controller.proxy.app import Meter, log
from controller.proxy.config import MeterConfig, read_keys


def serve(config_path: Path) -> None:
    """Run the meter until SIGTERM; what a killed meter left open is brought to a final state first.

    Raises InvalidInput for a wrong configuration, PortOccupied for a second meter, LedgerUnavailable when the ledger
    can no longer be written.
    """
    config = read_record(config_path, MeterConfig)
    keys = read_keys(Path(config.keys) if config.keys else None)
    card = read_record(Path(config.rate_card), RateCard)
    clock = SystemClock()
    ledger: SqliteLedger | None = None

    async def build(stop: Stop) -> web.Application:
        nonlocal ledger
        # Inside the lock of run_service: only then is no other meter alive whose requests would be declared lost.
        ledger = SqliteLedger(Path(config.ledger), clock)
        unknown = ledger.recover(at=clock.now())
        if unknown:
            log.warning("recovered", unknown=unknown)
        meter = Meter(config, ledger=ledger, card=card, keys=keys, clock=clock, entropy=SystemEntropy(), stop=stop)
        return meter.application()

    try:
        run_service(build, socket=Path(config.socket), drain_seconds=config.drain_seconds)
    finally:
        if ledger is not None:
            ledger.close()
