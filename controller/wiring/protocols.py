"""Anyone's dataset under the rules of cost-index or optimizer-matrix, with its frozen plan if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.dataset import parse_dataset
from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.analyse.plan import seed_of
from controller.domain.ids import sha256_digest
from controller.domain.json_files import parse_record
from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.protocols.cost_index.plan import CostIndexPlan
from controller.protocols.cost_index.show import describe as describe_cost_index
from controller.protocols.optimizer_matrix.plan import OptimizerPlan
from controller.protocols.optimizer_matrix.show import describe as describe_optimizer_matrix
from controller.wiring.inputs import read_input

Protocol = Literal["cost-index", "optimizer-matrix"]


def analyse_protocol(source: Path, protocol: Protocol, *, seed: str | None, frozen: Path | None) -> tuple[Record, str]:
    """The analysis as a record and as text. Raises InvalidInput with file and line.

    optimizer-matrix draws nothing, so that a seed is checked and has no effect there.
    """
    if source.is_dir():
        raise InvalidInput(
            f"{source}: a round of fairtrial is a harness-round", remedy=f"Name its dataset: {source}/dataset.jsonl."
        )
    rows = parse_dataset(read_input(source), name=source.name)
    plan = None if frozen is None else read_input(frozen)
    digest = None if plan is None else sha256_digest(plan)
    where = "" if frozen is None else frozen.name
    if protocol == "cost-index":
        cohort = None if plan is None else parse_record(plan, CostIndexPlan, where)
        index = analyse_cost_index(rows, cohort, seed=seed, plan_digest=digest, name=source.name)
        return index, describe_cost_index(index)
    seed_of(rows, seed)
    policies = None if plan is None else parse_record(plan, OptimizerPlan, where)
    matrix = analyse_optimizer_matrix(rows, policies, plan_digest=digest, name=source.name)
    return matrix, describe_optimizer_matrix(matrix)
