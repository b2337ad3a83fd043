"""From an analysed round to its release."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.system_clock import SystemClock
from controller.conductor.history import run_histories
from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import AttemptId
from controller.domain.usage import AttemptAccount
from controller.ports.named_files import read_named
from controller.proxy.config import read_keys as read_keys_of_providers
from controller.publish import RoundRecords, publish
from controller.settings import Settings
from controller.wiring.ledgers import ledger_of
from controller.wiring.rounds import REPORT_FILE, SECRET_FILE, OpenRound, checkpoints_of, read_round
from controller.wiring.tools import local_files, publisher


def publish_round(settings: Settings, round_dir: Path, out: Path) -> Path:
    """Write the next version of the release; its directory."""
    found = read_round(round_dir)
    checkpoints_of(settings, found).sign()
    accounts = _accounts(settings, found)
    report = found.directory / REPORT_FILE
    records = RoundRecords(
        statements=found.journal.statements(),
        ledger=[row for account in accounts for row in account.requests],
        refusals=[refusal for account in accounts for refusal in account.refusals],
        report=read_named(report).decode(errors="replace") if report.is_file() else "",
    )
    published = publish(
        found.directory,
        out,
        records,
        files=local_files(),
        signer=publisher(settings),
        recompute=RoundRecompute(),
        secrets=secrets_of(settings, found),
        private_paths=private_paths(settings, found),
    )
    return published.path


def _accounts(settings: Settings, found: OpenRound) -> list[AttemptAccount]:
    """What the meter knows of every attempt, in the order of their intents."""
    histories = run_histories(found.journal.statements())
    ledger = ledger_of(settings, found.directory, found.digest).open(SystemClock())
    try:
        return [ledger.account(AttemptId(a.attempt_id)) for h in histories.values() for a in h.attempts]
    finally:
        ledger.close()


def private_paths(settings: Settings, found: OpenRound) -> list[str]:
    """Paths of this machine that must not leave."""
    return [str(settings.project), str(Path.home()), str(found.directory)]


def secrets_of(settings: Settings, found: OpenRound) -> list[bytes]:
    """Values that must not leave: what the run-scoped tokens derive from, our signing key, and every provider key."""
    paths = [found.directory / SECRET_FILE, settings.keys_dir / "publisher.pem"]
    providers = settings.keys_dir / "providers.json"
    keys = read_keys_of_providers(providers) if providers.is_file() else {}
    return [path.read_bytes() for path in paths if path.is_file()] + [key.encode() for key in keys.values()]
