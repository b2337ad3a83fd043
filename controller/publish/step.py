"""Gather, refuse or build, check, and write one version of a release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.domain.ids import sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement
from controller.domain.usage import MeteredRequest, Refusal
from controller.errors import InvalidInput, LeakFound, NotApproved, NotPublishable, RoundNotFound
from controller.evidence import bundle
from controller.evidence.approval import approval_name, approved_of
from controller.evidence.canonical import canonical, lines, parse
from controller.evidence.check import CheckReport, examine
from controller.evidence.envelope import INDEX_TYPE, check
from controller.evidence.exhibits import Recompute
from controller.evidence.log import leaves
from controller.evidence.trails import fold, judged_patches
from controller.ports.files import DurableFiles
from controller.ports.signer import Signer
from controller.publish import rules
from controller.publish.excerpts import excerpts_of
from controller.publish.report_context import Version

_NOTHING: Final = rules.Private()
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
    report: Callable[[tuple[Version, ...]], str]  # report.html with the versions of the release; empty if not analysed


@dataclass(frozen=True)
class Published:
    """One written version, with the report of the check it passed."""

    path: Path
    version: int
    report: CheckReport


@dataclass(frozen=True)
class _Earlier:
    """The versions below the output directory, and the newest of them."""

    versions: tuple[Version, ...] = ()
    files: Mapping[str, bytes] | None = None
    payload_digest: str | None = None  # of the newest one's index


def publish(
    round_dir: Path,
    out: Path,
    records: RoundRecords,
    *,
    files: DurableFiles,
    signer: Signer,
    recompute: Recompute,
    private: rules.Private = _NOTHING,
    correction: str | None = None,
) -> Published:
    """Write the next version below `out`. When nothing changed since the newest one, that one is returned instead.

    Raises NotPublishable naming every open gate or the failed step of the check; LeakFound; NotApproved with the report
    that needs approval, which then lies in the round's directory; InvalidInput for a correction that says nothing;
    RoundNotFound; DiskFull.
    """
    round_ = _Round(round_dir, records, signer, recompute, private)
    ring = KeyRing(keys=(signer.key,))
    correction = None if correction is None else _told_why(correction)
    earlier = _earlier(out, files, ring)
    if earlier.files is not None:
        number = len(earlier.versions)
        again = round_.assemble(records.report(earlier.versions))
        if {name: data for name, data in earlier.files.items() if name != bundle.INDEX} == again:
            return Published(out / f"v{number}", number, round_.check(earlier.files, ring))
        if correction is None:
            raise NotPublishable(
                f"round {round_.manifest.round_id}: v{number} is published, and this version differs from it",
                remedy="Say why with --correction; readers will find the sentence in the report.",
            )
    version = len(earlier.versions) + 1
    wanted = Version(number=version, correction=correction if version > 1 else None)
    release = round_.assemble(records.report((*earlier.versions, wanted)))
    round_.require_approval(release)
    built = bundle.build(
        release,
        signer,
        round_id=round_.manifest.round_id,
        manifest_digest=sha256_digest(release[bundle.MANIFEST]),
        version=version,
        supersedes=earlier.payload_digest,
        correction=wanted.correction,
    )
    report = round_.check(built, ring)
    path = out / f"v{version}"
    files.create_directory(path, built)
    return Published(path, version, report)


class _Round:
    """One round on its way out."""

    def __init__(
        self, directory: Path, records: RoundRecords, signer: Signer, recompute: Recompute, private: rules.Private
    ) -> None:
        self._directory = directory
        self._records = records
        self._signer = signer
        self._recompute = recompute
        self._private = private
        self._present = _round_files(directory)
        self.manifest: RoundManifest = recompute.manifest(self._present[bundle.MANIFEST])

    def assemble(self, report: str) -> dict[str, bytes]:
        """Every file of a version but its index. Raises NotPublishable with the open gates, LeakFound."""
        present, statements = self._present, self._records.statements
        dataset, analysis = present.get(bundle.DATASET), present.get(bundle.ANALYSIS)
        gates = rules.open_gates(
            self.manifest,
            statements,
            dataset=dataset,
            analysis=analysis,
            report=report,
            is_signed=bundle.checkpoint_name(len(statements)) in present,
        )
        self.refuse([*gates])
        assert dataset is not None and analysis is not None, "a gate of their own"
        if self.manifest.kind == "measured":
            self.refuse([*self._recompute.release_gates(self.manifest, analysis)])
        withheld = judged_patches(self.manifest, fold(statements), sealed=True)
        open_ = {name: data for name, data in present.items() if name not in withheld}
        spelled = leaves(statements)
        release = {
            **open_,
            bundle.STATEMENTS: b"".join(leaf + b"\n" for leaf in spelled),
            bundle.CHECKPOINT: present[bundle.checkpoint_name(len(spelled))],
            bundle.LEDGER: lines(self._records.ledger),
            bundle.REFUSALS: lines(self._records.refusals),
            bundle.EXCERPTS: lines(excerpts_of(statements, open_, self._private)),
            bundle.AGGREGATE: self._recompute.aggregate(self.manifest, dataset, analysis),
            bundle.REPORT: report.encode(),
            bundle.KEYS: canonical(KeyRing(keys=(self._signer.key,))),
        }
        approval = self._directory / approval_name(approved_of(self.manifest.round_id, release))
        if approval.is_file():
            release[bundle.APPROVAL] = approval.read_bytes()
        release[bundle.SUMS] = bundle.sums(release)
        found = [*rules.leaks(release, self._private)]
        if found:
            raise LeakFound(self._told(found))
        return release

    def require_approval(self, release: Mapping[str, bytes]) -> None:
        """Raises NotApproved when a measured round has no approval; the report to be read is then in its directory."""
        if self.manifest.kind == "rehearsal" or bundle.APPROVAL in release:
            return
        path = self._directory / bundle.REPORT
        path.write_bytes(release[bundle.REPORT])
        digest = sha256_digest(release[bundle.REPORT])
        raise NotApproved(self._told([f"approved: nobody has approved {path}, {digest}"]))

    def check(self, built: Mapping[str, bytes], ring: KeyRing) -> CheckReport:
        """The stranger's own check, before anything is written: what we would refuse, we don't publish."""
        report = examine(built, self._recompute, keys=ring, trust="publisher")
        self.refuse([f"check step {s.number} ({s.name}): {s.detail}" for s in report.steps if s.passed is False])
        return report

    def refuse(self, reasons: Sequence[str]) -> None:
        """Raises NotPublishable with the reasons, if there are any."""
        if reasons:
            raise NotPublishable(self._told(reasons))

    def _told(self, reasons: Sequence[str]) -> str:
        return "\n".join(f"round {self.manifest.round_id}: {reason}" for reason in reasons)


def _told_why(correction: str) -> str:
    """The correction without space around it. Raises InvalidInput when it says nothing or more than a report shows."""
    text = correction.strip()
    if not 1 <= len(text) <= bundle.CORRECTION_CHARS_MAX:
        raise InvalidInput(
            f"--correction: {len(text)} characters", remedy=f"Say why in 1 to {bundle.CORRECTION_CHARS_MAX} characters."
        )
    return text


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


def _earlier(out: Path, files: DurableFiles, ring: KeyRing) -> _Earlier:
    """Every version so far, as their signed indexes tell it. Raises BadSignature for one that is not ours."""
    matches = (_VERSION.fullmatch(path.name) for path in out.glob("v*"))
    newest = max((int(match.group(1)) for match in matches if match), default=0)
    if not newest:
        return _Earlier()
    versions, payload = [], b""
    for number in range(1, newest + 1):
        where = f"v{number}/{bundle.INDEX}"
        payload = check((out / where).read_bytes(), INDEX_TYPE, ring, where)
        index = parse(payload, bundle.BundleIndex, where)
        versions.append(Version(number=number, correction=index.correction))
    held = files.read_directory(out / f"v{newest}", bytes_max=bundle.BUNDLE_BYTES_MAX)
    return _Earlier(tuple(versions), held, sha256_digest(payload))
