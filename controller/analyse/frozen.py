"""The analysis of a round's dataset, as its manifest froze it, under the rules of its protocol. Pure."""

from __future__ import annotations

from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.dataset import parse_dataset
from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.analyse.plan import plan_of_manifest
from controller.analyse.rules import analyse
from controller.domain.ids import sha256_digest
from controller.domain.plan import RoundManifest
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.cost_index.manifest import CostIndexManifest
from controller.protocols.harness_round.estimates import Analysis
from controller.protocols.harness_round.manifest import HarnessRoundManifest
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis
from controller.protocols.optimizer_matrix.manifest import OptimizerMatrixManifest

RoundAnalysis = Analysis | CostIndexAnalysis | OptimizerAnalysis


def analyse_frozen(manifest: RoundManifest, dataset: bytes) -> tuple[RoundAnalysis, bytes]:
    """The analysis as a record and as canonical JSON.

    The plan is the manifest's, so the manifest's digest stands for the plan's. Raises InvalidInput naming line and
    field, also for a round that its protocol leaves without a report.
    """
    rows = parse_dataset(dataset)
    digest = sha256_digest(canonical(manifest))
    found: RoundAnalysis
    match manifest:
        case HarnessRoundManifest():
            found = analyse(rows, plan_of_manifest(manifest))
        case CostIndexManifest():
            resamples = manifest.uncertainty.resamples
            found = analyse_cost_index(rows, manifest.plan, plan_digest=digest, resamples=resamples)
        case OptimizerMatrixManifest():
            found = analyse_optimizer_matrix(rows, manifest.plan, plan_digest=digest)
        case _:
            raise InvalidInput(f"protocol: {manifest.protocol!r} has no analysis")
    return found, canonical(found)
