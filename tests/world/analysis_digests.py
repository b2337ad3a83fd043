"""What each protocol's analysis of a fixed dataset hashes to, here: `python -m tests.world.analysis_digests`."""

from __future__ import annotations

import json
import sys

import numpy as np

from controller.analyse import analyse_bytes
from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.dataset import parse_dataset
from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.domain.ids import sha256_digest
from controller.evidence.canonical import canonical
from tests.world.cost_index import whole
from tests.world.policy_matrix import matrix, plan
from tests.world.rounds import SEED, jsonl, realistic

ROUND = jsonl(realistic([f"t{task}" for task in range(60)], ["a", "b", "c"], seed=4))


def digests() -> dict[str, str]:
    """By protocol, the digest of the canonical bytes of its analysis; from bytes to bytes, as a user has it."""
    cohort, policies = parse_dataset(jsonl(whole())), parse_dataset(jsonl(matrix()))
    return {
        "harness-round": sha256_digest(analyse_bytes(ROUND)[1]),
        "cost-index": sha256_digest(canonical(analyse_cost_index(cohort, seed=SEED))),
        "optimizer-matrix": sha256_digest(canonical(analyse_optimizer_matrix(policies, plan()))),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"numpy": np.__version__, "digests": digests()}))
