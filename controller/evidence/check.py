"""The check of a bundle, for a stranger without access to us. The numbers are those of docs/evidence.md.

 1. The index is signed by a trusted key, and names exactly the files that are there, with their bytes.
 2. The manifest is what was signed at freeze, canonical, and of this round.
 3. The corpus root follows from the tasks; the digests of rate card, retail policy and network policy from each.
 4. Every statement follows from the one before it and claims what its kind claims; every checkpoint signs size and root
    of a beginning of the log, at freeze, at each start, at the close, and of the whole. Witnesses and time authorities
    that were asked for vouch for the whole round.
 5. At the moment of every attempt's intent a signed grant was in force and covered it with its ceilings; no grant goes
    beyond the frozen envelope.
 6. Every logical run has exactly one score; every intended attempt is settled, classified and destroyed, or its run is
    halted or the round stopped for a predeclared event; every patch is the one that was judged.
 7. Every charge is recomputed from its usage and the frozen rate card, every finding from the provider's usage report
    likewise; the sums are those of the log and the dataset.
 8. The schedule is recomputed from the seed.
 9. The dataset is rebuilt from the statements, and the analysis from the dataset, byte for byte.
10. A rehearsal says so everywhere; a measured round ran in machines, never in bare containers.
11. Excerpts, aggregate and sums are of these files; a measured round meets its protocol's gates, and a person whom the
    manifest names approved exactly this report, dataset and analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from controller.domain.keys import KeyRing
from controller.domain.record import Record
from controller.errors import BundleRejected, FairtrialError, NotCanonical
from controller.evidence import steps_charges, steps_records, steps_release, steps_results, steps_runs, steps_spending
from controller.evidence.bundle import INDEX, KEYS
from controller.evidence.canonical import parse
from controller.evidence.envelope import Envelope
from controller.evidence.exhibits import Exhibits, Outsiders, Recompute

Trust = Literal["pinned", "publisher", "self-signed"]

STEPS: Final[tuple[tuple[str, Callable[[Exhibits], str]], ...]] = (
    ("index", steps_records.check_index),
    ("manifest", steps_records.check_manifest),
    ("commitments", steps_records.check_commitments),
    ("statements", steps_records.check_statements),
    ("authorization", steps_spending.check_authorization),
    ("logical runs", steps_runs.check_runs),
    ("charges", steps_charges.check_charges),
    ("schedule", steps_results.check_schedule),
    ("dataset and analysis", steps_results.check_results),
    ("kind of round", steps_results.check_kind),
    ("release", steps_release.check_release),
)

TRUST_TEXT: Final[Mapping[Trust, str]] = {
    "pinned": "signed by the key you pinned",
    "publisher": "signed by the key this machine knows for the publisher",
    "self-signed": "self-signed: integrity only. Nobody vouches for the key inside the bundle; pin one with --key",
}
NO_WITNESS: Final = "no witness: only the publisher's word that he signed no other history; ask for one with --witness"


class CheckStep(Record):
    """One step and what it saw. `passed` is null for a step that an earlier failure kept from running."""

    number: int
    name: str
    passed: bool | None
    detail: str


class CheckReport(Record):
    """The outcome of a check. `trust` says whose word the signature is, `witness_text` whose word it is besides."""

    schema_version: Literal["fairtrial.check/1"] = "fairtrial.check/1"
    passed: bool
    trust: Trust
    trust_text: str
    witness_text: str
    round_id: str | None
    manifest_digest: str | None
    kind: Literal["rehearsal", "measured"] | None
    steps: tuple[CheckStep, ...]


def choose_keys(
    files: Mapping[str, bytes], *, pinned: KeyRing | None, local: KeyRing | None
) -> tuple[KeyRing | None, Trust]:
    """Whose keys to trust: the pinned ones; else this machine's own, if one signed it; else those inside."""
    if pinned is not None:
        return pinned, "pinned"
    if local is not None:
        try:
            signer = parse(files.get(INDEX, b""), Envelope, INDEX).signatures[0].keyid
        except NotCanonical:
            return None, "self-signed"
        if local.find(signer) is not None:
            return local, "publisher"
    return None, "self-signed"


def examine(
    files: Mapping[str, bytes],
    recompute: Recompute,
    *,
    keys: KeyRing | None = None,
    trust: Trust = "pinned",
    outsiders: Outsiders | None = None,
) -> CheckReport:
    """Run the steps in order up to the first that fails. Never raises because of what the files hold.

    `keys` are the trusted keys. Without them the keys inside the bundle are used, and the report says so. `outsiders`
    are those who must have vouched for the round as well; without them, the report says that nobody did.
    """
    steps: list[CheckStep] = []
    try:
        ring = keys or parse(files.get(KEYS, b""), KeyRing, KEYS)
    except FairtrialError as error:
        steps.append(CheckStep(number=1, name=STEPS[0][0], passed=False, detail=str(error)))
        return _report(steps, None, "self-signed")
    exhibits = Exhibits(files, ring, recompute, outsiders)
    for number, (name, step) in enumerate(STEPS, start=1):
        try:
            steps.append(CheckStep(number=number, name=name, passed=True, detail=step(exhibits)))
        except FairtrialError as error:
            steps.append(CheckStep(number=number, name=name, passed=False, detail=str(error)))
            break
        except Exception as error:  # a hostile bundle may break any reader; whatever it breaks, it is refused
            detail = f"malformed: {type(error).__name__}: {error}"
            steps.append(CheckStep(number=number, name=name, passed=False, detail=detail[:500]))
            break
    return _report(steps, exhibits, trust if keys else "self-signed")


def check(
    files: Mapping[str, bytes],
    recompute: Recompute,
    *,
    keys: KeyRing | None = None,
    trust: Trust = "pinned",
    outsiders: Outsiders | None = None,
) -> CheckReport:
    """As `examine`, but raises BundleRejected with number, name and finding of the first step that fails."""
    report = examine(files, recompute, keys=keys, trust=trust, outsiders=outsiders)
    for step in report.steps:
        if step.passed is False:
            raise BundleRejected(f"step {step.number} ({step.name}): {step.detail}")
    return report


def _report(steps: list[CheckStep], exhibits: Exhibits | None, trust: Trust) -> CheckReport:
    """Pad the list with the steps that were not reached; name the round once its manifest has passed."""
    passed = len(steps) == len(STEPS) and all(step.passed for step in steps)
    known = exhibits if exhibits is not None and sum(step.passed is True for step in steps) >= 2 else None
    for number in range(len(steps) + 1, len(STEPS) + 1):
        steps.append(CheckStep(number=number, name=STEPS[number - 1][0], passed=None, detail="not reached"))
    return CheckReport(
        passed=passed,
        trust=trust,
        trust_text=TRUST_TEXT[trust],
        witness_text=_witness_text(exhibits.outsiders if exhibits else Outsiders()),
        round_id=known.manifest.round_id if known else None,
        manifest_digest=known.manifest_digest if known else None,
        kind=known.manifest.kind if known else None,
        steps=tuple(steps),
    )


def _witness_text(outsiders: Outsiders) -> str:
    """Who was asked for; a report that passed says that they vouched."""
    names = [witness.name for witness in outsiders.witnesses]
    if outsiders.authority is not None:
        names.append("the time authority")
    return f"vouched for by {', '.join(names)}" if names else NO_WITNESS
