"""The offline check of a bundle."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.signer_file import read_keys
from controller.adapters.timestamp_openssl import OpensslTimestamps
from controller.conductor.recompute import RoundRecompute
from controller.domain.keys import KeyRing
from controller.evidence.bundle import BUNDLE_BYTES_MAX
from controller.evidence.check import CheckReport, check, choose_keys
from controller.evidence.exhibits import Outsiders
from controller.settings import Settings
from controller.wiring.inputs import read_witnesses
from controller.wiring.tools import local_files, publisher


def check_bundle(
    settings: Settings, bundle: Path, key: Path | None, *, witness: Path | None = None, tsa: Path | None = None
) -> CheckReport:
    """Check a bundle offline. Raises BundleRejected naming the step that refuses it.

    `witness` names a file of verifier keys, `tsa` one of certificates: whose word is asked for besides the publisher's.
    """
    files = local_files().read_directory(bundle, bytes_max=BUNDLE_BYTES_MAX)
    own = settings.keys_dir / "publisher.pem"
    local = KeyRing(keys=(publisher(settings).key,)) if own.is_file() else None
    keys, trust = choose_keys(files, pinned=read_keys(key) if key else None, local=local)
    outsiders = Outsiders(
        witnesses=read_witnesses(witness) if witness else (), authority=OpensslTimestamps(tsa) if tsa else None
    )
    return check(files, RoundRecompute(), keys=keys, trust=trust, outsiders=outsiders)


def describe_check(report: CheckReport) -> str:
    """The check as text, its verdict last."""
    marks = {True: "ok ", False: "NO ", None: " - "}
    lines = [f"{marks[step.passed]} {step.number:2} {step.name}: {step.detail}" for step in report.steps]
    verdict = f"{'accepted' if report.passed else 'REFUSED'}; {report.trust_text}"
    return "\n".join([*lines, f"    {report.witness_text}", verdict])
