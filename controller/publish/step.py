"""Gather, refuse or build, check, and write one version of a release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.domain.ids import sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement
from controller.domain.usage import MeteredRequest, Refusal
from controller.errors import NotPublishable, RoundNotFound
from controller.evidence import bundle
from controller.evidence.canonical import canonical, lines
from controller.evidence.check import CheckReport, examine
from controller.evidence.envelope import INDEX_TYPE, check
from controller.evidence.exhibits import Recompute
from controller.evidence.trails import fold, judged_patches
from controller.ports.files import DurableFiles
from controller.ports.signer import Signer
from controller.publish import rules

# What earlier stages leave in the round's directory under names of their own.
_KEPT: Final = (
    "authorization*.dsse.json",
    "patches/*.patch",
    "checkpoints/*.txt",
    "witness/*.txt",
    "timestamps/*.tsr",
    "disputes/*.txt",
)
_VERSION: Final = re.compile(r"v([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class RoundRecords:
    """What lies in stores and not yet in the round's directory."""

    statements: Sequence[Statement]
    ledger: Sequence[MeteredRequest]
    refusals: Sequence[Refusal]
    report: str  # the rendered report.html


@dataclass(frozen=True)
class Published:
    """One written version, with the report of the check it passed."""

    path: Path
    version: int
    report: CheckReport


def publish(
    round_dir: Path,
    out: Path,
    records: RoundRecords,
    *,
    files: DurableFiles,
    signer: Signer,
    recompute: Recompute,
    secrets: Sequence[bytes] = (),
    private_paths: Sequence[str] = (),
) -> Published:
    """Write the next version below `out`. When nothing changed since the newest one, that one is returned instead.

    Raises NotPublishable naming every open gate, leak, or the failed step of the check; RoundNotFound; DiskFull.
    """
    present = _round_files(round_dir)
    manifest = recompute.manifest(present[bundle.MANIFEST])
    gates = rules.open_gates(
        manifest,
        records.statements,
        dataset=present.get(bundle.DATASET),
        analysis=present.get(bundle.ANALYSIS),
        report=records.report,
        is_signed=bundle.checkpoint_name(len(records.statements)) in present,
    )
    _refuse(manifest, [*gates])
    withheld = judged_patches(manifest, fold(records.statements), sealed=True)
    release = _assemble({n: d for n, d in present.items() if n not in withheld}, records, signer)
    _refuse(manifest, [*rules.leaks(release, secrets=secrets, private_paths=private_paths)])
    newest = _newest(out)
    ring = KeyRing(keys=(signer.key,))
    supersedes: str | None = None
    if newest:
        path = out / f"v{newest}"
        earlier = files.read_directory(path, bytes_max=bundle.BUNDLE_BYTES_MAX)
        if {name: data for name, data in earlier.items() if name != bundle.INDEX} == release:
            return Published(path, newest, _check(manifest, earlier, recompute, ring))
        supersedes = sha256_digest(check(earlier[bundle.INDEX], INDEX_TYPE, ring, f"v{newest}/{bundle.INDEX}"))
    version = newest + 1
    built = bundle.build(
        release,
        signer,
        round_id=manifest.round_id,
        manifest_digest=sha256_digest(release[bundle.MANIFEST]),
        version=version,
        supersedes=supersedes,
    )
    report = _check(manifest, built, recompute, ring)
    path = out / f"v{version}"
    files.create_directory(path, built)
    return Published(path, version, report)


def _round_files(round_dir: Path) -> dict[str, bytes]:
    """The publishable files that earlier stages left in the round's directory, by their names in the bundle."""
    names = [bundle.MANIFEST, bundle.MANIFEST_ENVELOPE, bundle.DATASET, bundle.ANALYSIS]
    paths = [round_dir / name for name in names]
    for pattern in _KEPT:
        paths += round_dir.glob(pattern)
    found = {path.relative_to(round_dir).as_posix(): path.read_bytes() for path in paths if path.is_file()}
    if bundle.MANIFEST not in found:
        raise RoundNotFound(f"{round_dir}: no {bundle.MANIFEST}")
    return found


def _assemble(present: Mapping[str, bytes], records: RoundRecords, signer: Signer) -> dict[str, bytes]:
    return {
        **present,
        bundle.STATEMENTS: lines(records.statements),
        bundle.CHECKPOINT: present[bundle.checkpoint_name(len(records.statements))],
        bundle.LEDGER: lines(records.ledger),
        bundle.REFUSALS: lines(records.refusals),
        bundle.REPORT: records.report.encode(),
        bundle.KEYS: canonical(KeyRing(keys=(signer.key,))),
    }


def _check(manifest: RoundManifest, built: Mapping[str, bytes], recompute: Recompute, ring: KeyRing) -> CheckReport:
    """The stranger's own check, before anything is written: what we would refuse, we don't publish."""
    report = examine(built, recompute, keys=ring, trust="publisher")
    _refuse(manifest, [f"check step {s.number} ({s.name}): {s.detail}" for s in report.steps if s.passed is False])
    return report


def _refuse(manifest: RoundManifest, reasons: Sequence[str]) -> None:
    if reasons:
        raise NotPublishable("\n".join(f"round {manifest.round_id}: {reason}" for reason in reasons))


def _newest(out: Path) -> int:
    """The highest version below `out`; 0 when there is none."""
    matches = (_VERSION.fullmatch(path.name) for path in out.glob("v*"))
    return max((int(match.group(1)) for match in matches if match), default=0)
