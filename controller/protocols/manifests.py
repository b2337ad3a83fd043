"""Which protocol's manifest bytes hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.domain.plan import RoundManifest
from controller.errors import NotCanonical
from controller.evidence.canonical import loads, parse
from controller.protocols.cost_index.manifest import CostIndexManifest
from controller.protocols.harness_round.manifest import HarnessRoundManifest
from controller.protocols.optimizer_matrix.manifest import OptimizerMatrixManifest

MANIFESTS: Final[Mapping[str, type[RoundManifest]]] = {
    "harness-round": HarnessRoundManifest,
    "cost-index": CostIndexManifest,
    "optimizer-matrix": OptimizerMatrixManifest,
}


def parse_manifest(data: bytes, where: str) -> RoundManifest:
    """The manifest in canonical bytes, as its protocol's record. Raises NotCanonical naming the file and the field."""
    value = loads(data, where)
    protocol = value.get("protocol") if isinstance(value, dict) else None
    if not isinstance(protocol, str) or protocol not in MANIFESTS:
        raise NotCanonical(f"{where}: protocol: not one of {', '.join(MANIFESTS)}")
    return parse(data, MANIFESTS[protocol], where)
