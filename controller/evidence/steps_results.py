"""Steps 8 to 10: what was published follows from what was frozen and recorded, and is called what it is."""

from __future__ import annotations

from typing import Final

from controller.domain import bodies
from controller.domain.plan import REHEARSAL_PROVIDER, cells
from controller.domain.statement import StatementKind
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.claims import claim
from controller.evidence.exhibits import Exhibits

REHEARSAL_MARK: Final = "rehearsal"  # what the report of a rehearsal must say somewhere


def check_schedule(exhibits: Exhibits) -> str:
    """(8) The seed gives this schedule, and the schedule covers every cell and repeat once."""
    manifest = exhibits.manifest
    if exhibits.recompute.schedule(manifest) != manifest.schedule:
        raise BundleRejected("the schedule does not follow from the seed")
    expected = {str(cell[3]) for cell in cells(manifest.tasks, manifest.arms, manifest.replicates)}
    if {run.id for run in manifest.schedule} != expected or len(manifest.schedule) != len(expected):
        raise BundleRejected("the schedule does not cover every task, arm and repeat once")
    return f"{len(manifest.schedule)} logical runs in the order of the seed"


def check_results(exhibits: Exhibits) -> str:
    """(9) Rebuild the dataset from the statements and the analysis from the dataset; the bytes must be equal."""
    dataset = exhibits.files[bundle.DATASET]
    if exhibits.recompute.dataset(exhibits.manifest, exhibits.manifest_digest, exhibits.statements) != dataset:
        raise BundleRejected(f"{bundle.DATASET} does not follow from the statements")
    if exhibits.recompute.analysis(exhibits.manifest, dataset) != exhibits.files[bundle.ANALYSIS]:
        raise BundleRejected(f"{bundle.ANALYSIS} does not follow from the dataset")
    return f"{len(exhibits.dataset)} rows rebuilt, analysis recomputed, both equal byte for byte"


def check_kind(exhibits: Exhibits) -> str:
    """(10) A scripted model makes a rehearsal, and a rehearsal is never shown as a measurement."""
    manifest = exhibits.manifest
    is_rehearsal = manifest.kind == "rehearsal"
    scripted = {lane.provider == REHEARSAL_PROVIDER for lane in manifest.lanes}
    if scripted != {is_rehearsal}:
        raise BundleRejected(f"the round calls itself {manifest.kind}, but its lanes say otherwise")
    for row in exhibits.dataset:
        if row.kind != manifest.kind:
            raise BundleRejected(f"dataset: {row.task}.{row.arm}.r{row.replicate} calls itself {row.kind}")
    if is_rehearsal:
        if REHEARSAL_MARK.encode() not in exhibits.files[bundle.REPORT].lower():
            raise BundleRejected(f"{bundle.REPORT} does not say that this is a rehearsal")
        return "rehearsal: scripted model, not a measurement; marked in manifest, dataset and report"
    for statement in exhibits.statements:
        if statement.kind is StatementKind.ROUND_STARTED:
            started = claim(statement, bodies.RoundStarted)
            if started.isolation != "vm":
                raise BundleRejected(f"epoch {started.epoch} ran in {started.isolation} isolation")
    return "measured: every epoch ran in disposable machines"
