"""What each protocol adds to a release: its public numbers, and its own conditions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.domain.aggregate import Aggregate, Sources
from controller.domain.ids import sha256_digest
from controller.domain.plan import RoundManifest
from controller.evidence.bundle import ANALYSIS
from controller.evidence.canonical import canonical, parse
from controller.protocols.cost_index import release as cost_index
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.harness_round import release as harness_round
from controller.protocols.harness_round.estimates import Analysis
from controller.protocols.optimizer_matrix import release as optimizer_matrix
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis

_ANALYSES: Final[Mapping[str, type[Analysis | CostIndexAnalysis | OptimizerAnalysis]]] = {
    "harness-round": Analysis,
    "cost-index": CostIndexAnalysis,
    "optimizer-matrix": OptimizerAnalysis,
}


def parse_analysis(manifest: RoundManifest, analysis: bytes) -> Analysis | CostIndexAnalysis | OptimizerAnalysis:
    """The analysis in canonical bytes, as its protocol's record. Raises NotCanonical naming the field."""
    return parse(analysis, _ANALYSES[manifest.protocol], ANALYSIS)


def aggregate(manifest: RoundManifest, dataset: bytes, analysis: bytes) -> Aggregate:
    """The public numbers of an analysed round. Raises NotCanonical for an analysis that is none of its protocol."""
    found = parse_analysis(manifest, analysis)
    match found:
        case Analysis():
            told = found.headline, found.warnings, harness_round.metrics(found)
        case CostIndexAnalysis():
            told = found.conclusion, found.limitations, cost_index.metrics(found)
        case OptimizerAnalysis():
            told = found.conclusion, found.limitations, optimizer_matrix.metrics(found)
    conclusion, limitations, metrics = told
    sources = Sources(
        manifest=sha256_digest(canonical(manifest)),
        corpus_root=manifest.corpus_root,
        dataset=sha256_digest(dataset),
        analysis=sha256_digest(analysis),
    )
    return Aggregate(
        protocol=manifest.protocol,
        kind=manifest.kind,
        sources=sources,
        conclusion=conclusion,
        limitations=limitations,
        metrics=metrics,
    )


def release_gates(manifest: RoundManifest, analysis: bytes) -> tuple[str, ...]:
    """What of the protocol's own conditions forbids to release a measured round; empty when nothing does.

    A harness-round is released whatever it found, also when it was stopped: its report says so.
    """
    found = parse_analysis(manifest, analysis)
    match found:
        case CostIndexAnalysis():
            return cost_index.release_gates(found)
        case OptimizerAnalysis():
            return optimizer_matrix.release_gates(found)
        case _:
            return ()
