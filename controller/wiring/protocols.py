"""Anyone's dataset under the rules of cost-index or optimizer-matrix, with its frozen plan if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.dataset import parse_dataset
from controller.analyse.frozen import RoundAnalysis
from controller.analyse.optimizer_matrix import analyse_optimizer_matrix
from controller.analyse.plan import seed_of
from controller.domain.ids import sha256_digest
from controller.domain.json_files import parse_record
from controller.domain.record import Record
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.cost_index.plan import CostIndexPlan
from controller.protocols.cost_index.show import describe as describe_cost_index
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis
from controller.protocols.optimizer_matrix.plan import OptimizerPlan
from controller.protocols.optimizer_matrix.show import describe as describe_optimizer_matrix
from controller.wiring.analysing import conclusion
from controller.wiring.inputs import read_input

Protocol = Literal["cost-index", "optimizer-matrix"]


def analyse_protocol(source: Path, protocol: Protocol, *, seed: str | None, frozen: Path | None) -> tuple[Record, str]:
    """The analysis as a record and as text. Raises InvalidInput with file and line.

    optimizer-matrix draws nothing, so that a seed is checked and has no effect there.
    """
    rows = parse_dataset(read_input(source), name=source.name)
    plan = None if frozen is None else read_input(frozen)
    digest = None if plan is None else sha256_digest(plan)
    where = "" if frozen is None else frozen.name
    if protocol == "cost-index":
        cohort = None if plan is None else parse_record(plan, CostIndexPlan, where)
        index = analyse_cost_index(rows, cohort, seed=seed, plan_digest=digest, name=source.name)
        return index, describe(index)
    seed_of(rows, seed)
    policies = None if plan is None else parse_record(plan, OptimizerPlan, where)
    matrix = analyse_optimizer_matrix(rows, policies, plan_digest=digest, name=source.name)
    return matrix, describe(matrix)


def describe(found: RoundAnalysis) -> str:
    """The analysis as text: the whole of it, or of a harness-round, whose report shows the rest, the conclusion."""
    match found:
        case CostIndexAnalysis():
            return describe_cost_index(found)
        case OptimizerAnalysis():
            return describe_optimizer_matrix(found)
        case _:
            return conclusion(found)
