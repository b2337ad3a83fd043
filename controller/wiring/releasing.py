"""From an analysed round to its release."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from controller.adapters.system_clock import SystemClock
from controller.conductor.history import run_histories
from controller.conductor.recompute import RoundRecompute
from controller.conductor.world import TOKEN_KINDS, derived_token
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.statement import StatementKind
from controller.domain.usage import AttemptAccount
from controller.evidence import bundle
from controller.evidence.claims import claim
from controller.protocols.releases import parse_analysis
from controller.proxy.config import read_keys as read_keys_of_providers
from controller.publish import AttemptSecrets, Names, Private, RoundRecords, Version, publish
from controller.publish.deposit import DepositTerms, deposit_files
from controller.settings import Settings
from controller.wiring.analysing import report_of
from controller.wiring.ledgers import ledger_of
from controller.wiring.rounds import SECRET_FILE, OpenRound, checkpoints_of, read_round
from controller.wiring.tools import local_files, publisher


def publish_round(
    settings: Settings,
    round_dir: Path,
    out: Path,
    *,
    correction: str | None = None,
    deposit: DepositTerms | None = None,
) -> Path:
    """Write the next version of the release, and beside it what a repository asks of a deposit; its directory."""
    found = read_round(round_dir)
    checkpoints_of(settings, found).sign()
    accounts = _accounts(settings, found)
    records = RoundRecords(
        statements=found.journal.statements(),
        ledger=[row for account in accounts for row in account.requests],
        refusals=[refusal for account in accounts for refusal in account.refusals],
        report=lambda versions: _report(found, versions),
    )
    published = publish(
        found.directory,
        out,
        records,
        files=local_files(),
        signer=publisher(settings),
        recompute=RoundRecompute(),
        private=private_of(settings, found),
        correction=correction,
    )
    if deposit is not None:
        held = local_files().read_directory(published.path, bytes_max=bundle.BUNDLE_BYTES_MAX)
        for name, data in deposit_files(found.manifest, held, published.version, deposit).items():
            local_files().create_file(out / f"deposit-v{published.version}" / name, data)
    return published.path


def _report(found: OpenRound, versions: tuple[Version, ...]) -> str:
    """The report of what the round's directory holds; empty when it was not analysed."""
    paths = [found.directory / name for name in (bundle.DATASET, bundle.ANALYSIS)]
    if not all(path.is_file() for path in paths):
        return ""
    dataset, analysis = (path.read_bytes() for path in paths)
    return report_of(found, dataset, parse_analysis(found.manifest, analysis), versions=versions)


def _accounts(settings: Settings, found: OpenRound) -> list[AttemptAccount]:
    """What the meter knows of every attempt, in the order of their intents."""
    histories = run_histories(found.journal.statements())
    ledger = ledger_of(settings, found.directory, found.digest).open(SystemClock())
    try:
        return [ledger.account(AttemptId(a.attempt_id)) for h in histories.values() for a in h.attempts]
    finally:
        ledger.close()


def private_of(settings: Settings, found: OpenRound) -> Private:
    """Everything that must not leave: our secrets, what each attempt was given, and this machine's names."""
    paths = [found.directory / SECRET_FILE, settings.keys_dir / "publisher.pem"]
    providers = settings.keys_dir / "providers.json"
    keys = read_keys_of_providers(providers) if providers.is_file() else {}
    return Private(
        secrets=(*(path.read_bytes() for path in paths if path.is_file()), *(key.encode() for key in keys.values())),
        attempts=_attempts(found),
        paths=(str(settings.project), str(settings.state_dir), str(Path.home()), str(found.directory)),
        names=Names(users=(getpass.getuser(),), hosts=(os.uname().nodename,)),
    )


def _attempts(found: OpenRound) -> Mapping[str, AttemptSecrets]:
    """The tokens and canaries of every attempt, whichever generation of its machine received them."""
    path = found.directory / SECRET_FILE
    if not path.is_file():
        return {}
    secret = path.read_bytes()
    given: dict[str, dict[str, list[bytes]]] = {}
    for statement in found.journal.statements():
        if statement.kind is StatementKind.ATTEMPT_INTENDED:
            generation = claim(statement, bodies.AttemptIntended).generation
            values = given.setdefault(statement.subject, {kind: [] for kind in TOKEN_KINDS})
            for kind in TOKEN_KINDS:
                token = derived_token(secret, found.digest, kind, AttemptId(statement.subject), generation)
                values[kind].append(token.encode())
    return {
        attempt: AttemptSecrets(tokens=(*values["rt"], *values["up"]), canaries=tuple(values["canary"]))
        for attempt, values in given.items()
    }
