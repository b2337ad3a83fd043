"""From the log of a round to its dataset, analysis, report and release, and the offline check."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.signer_file import read_keys
from controller.adapters.system_clock import SystemClock
from controller.analyse import analyse, analyse_bytes
from controller.analyse.dataset import parse_dataset
from controller.analyse.plan import plan_of_rows
from controller.conductor.history import run_histories
from controller.conductor.recompute import HarnessRoundRecompute, plan_inputs
from controller.conductor.status import round_status
from controller.domain.ids import AttemptId
from controller.domain.keys import KeyRing
from controller.domain.usage import AttemptAccount
from controller.errors import InvalidInput
from controller.evidence.bundle import ANALYSIS, BUNDLE_BYTES_MAX, DATASET
from controller.evidence.check import CheckReport, check, choose_keys
from controller.ports.named_files import read_named
from controller.protocols.harness_round.estimates import Analysis
from controller.proxy.config import read_keys as read_keys_of_providers
from controller.publish import RoundRecords, publish
from controller.publish.report import context_of_round, render_report
from controller.settings import Settings
from controller.wiring.ledgers import ledger_of
from controller.wiring.rounds import SECRET_FILE, OpenRound, read_round
from controller.wiring.tools import local_files, publisher

REPORT = "report.html"


def analyse_round(settings: Settings, round_dir: Path) -> Analysis:
    """Write dataset.jsonl, analysis.json and report.html of a settled round. The same log gives the same bytes."""
    found = read_round(settings, round_dir)
    recompute = HarnessRoundRecompute()
    status = round_status(found.manifest, found.journal.statements())
    if status.state != "closed":
        raise InvalidInput(f"round {status.round_id} is not settled", remedy=f"Run `fairtrial settle {round_dir}`.")
    dataset = recompute.dataset(found.manifest, found.digest, found.journal.statements())
    analysis, data = analyse_bytes(dataset, plan_inputs(found.manifest))
    for name, content in ((DATASET, dataset), (ANALYSIS, data), (REPORT, _report(found, dataset, analysis).encode())):
        (found.directory / name).write_bytes(content)
    return analysis


def _report(found: OpenRound, dataset: bytes, analysis: Analysis) -> str:
    return render_report(
        context_of_round(
            found.manifest,
            found.digest,
            dataset=dataset,
            analysis=analysis,
            statements=found.journal.statements(),
        )
    )


def analyse_dataset(source: Path, *, seed: str | None) -> Analysis:
    """Analyse anyone's dataset. Raises InvalidInput with line numbers."""
    try:
        data = read_named(source)
    except OSError as error:
        raise InvalidInput(f"{source}: {error.strerror}") from error
    rows = parse_dataset(data, name=source.name)
    return analyse(rows, plan_of_rows(rows, seed=seed))


def publish_round(settings: Settings, round_dir: Path, out: Path) -> Path:
    """Write the next version of the release; its directory."""
    found = read_round(settings, round_dir)
    accounts = _accounts(settings, found)
    report = found.directory / REPORT
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
        recompute=HarnessRoundRecompute(),
        secrets=_secrets(settings, found),
        private_paths=[str(settings.project), str(Path.home()), str(found.directory)],
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


def _secrets(settings: Settings, found: OpenRound) -> list[bytes]:
    """Values that must not leave: what the run-scoped tokens derive from, our signing key, and every provider key."""
    paths = [found.directory / SECRET_FILE, settings.keys_dir / "publisher.pem"]
    providers = settings.keys_dir / "providers.json"
    keys = read_keys_of_providers(providers) if providers.is_file() else {}
    return [path.read_bytes() for path in paths if path.is_file()] + [key.encode() for key in keys.values()]


def check_bundle(settings: Settings, bundle: Path, key: Path | None) -> CheckReport:
    """Check a bundle offline. Raises BundleRejected naming the step that refuses it."""
    files = local_files().read_directory(bundle, bytes_max=BUNDLE_BYTES_MAX)
    own = settings.keys_dir / "publisher.pem"
    local = KeyRing(keys=(publisher(settings).key,)) if own.is_file() else None
    keys, trust = choose_keys(files, pinned=read_keys(key) if key else None, local=local)
    return check(files, HarnessRoundRecompute(), keys=keys, trust=trust)


def describe_check(report: CheckReport) -> str:
    """The check as text, its verdict last."""
    marks = {True: "ok ", False: "NO ", None: " - "}
    lines = [f"{marks[step.passed]} {step.number:2} {step.name}: {step.detail}" for step in report.steps]
    return "\n".join([*lines, f"{'accepted' if report.passed else 'REFUSED'}; {report.trust_text}"])


def conclusion(found: Analysis) -> str:
    """The sentence a reader may quote, with its mark if the round measured nothing."""
    mark = "rehearsal, not a measurement: " if found.kind == "rehearsal" else ""
    return mark + found.headline
