"""What a checker recomputes above the evidence layer: manifest, schedule, reconciliation, dataset, analysis, aggregate.

Pure."""

from __future__ import annotations

from collections.abc import Sequence

from controller import schedule
from controller.analyse.frozen import analyse_frozen
from controller.conductor.dataset import dataset_rows
from controller.domain.bodies import RunReconciled
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.provider_report import ProviderEvidence
from controller.domain.reconciliation import AttemptRecord
from controller.domain.statement import Statement
from controller.evidence.canonical import canonical, lines
from controller.protocols import releases
from controller.protocols.manifests import parse_manifest
from controller.settle import reconcile


class RoundRecompute:
    """The Recompute port of `evidence.check`, for a round of any protocol."""

    def manifest(self, data: bytes) -> RoundManifest:
        return parse_manifest(data, "manifest.json")

    def schedule(self, manifest: RoundManifest) -> tuple[LogicalRun, ...]:
        return schedule.allocation(
            [task.id for task in manifest.tasks],
            [arm.id for arm in manifest.arms],
            manifest.replicates,
            seed=manifest.seed,
            round_id=manifest.round_id,
        )

    def reconciliation(
        self,
        manifest: RoundManifest,
        run: LogicalRun,
        provider: ProviderEvidence,
        attempts: Sequence[AttemptRecord],
        *,
        scored: bool,
    ) -> RunReconciled:
        lane = manifest.lane(manifest.arm(run.arm).lane)
        return reconcile(provider, attempts, lane=lane, card=manifest.rate_card, scored=scored)

    def dataset(self, manifest: RoundManifest, manifest_digest: str, statements: Sequence[Statement]) -> bytes:
        return lines(dataset_rows(manifest, manifest_digest, statements))

    def analysis(self, manifest: RoundManifest, dataset: bytes) -> bytes:
        return analyse_frozen(manifest, dataset)[1]

    def aggregate(self, manifest: RoundManifest, dataset: bytes, analysis: bytes) -> bytes:
        return canonical(releases.aggregate(manifest, dataset, analysis))

    def release_gates(self, manifest: RoundManifest, analysis: bytes) -> Sequence[str]:
        return releases.release_gates(manifest, analysis)
