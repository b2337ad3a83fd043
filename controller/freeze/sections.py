"""The parts of a plan that only one protocol has. Paths are relative to the plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from controller.domain.ids import Slug
from controller.domain.record import Record
from controller.protocols.cost_index.manifest import SpendBoundary, Uncertainty
from controller.protocols.optimizer_matrix.candidate import DrawnHoldout
from controller.protocols.optimizer_matrix.manifest import Candidate, ProbeBoundary, Routing
from controller.protocols.optimizer_matrix.plan import Roles

RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class CostIndexSection(Record):
    """`cost_index:`, of a cost-index plan."""

    boundary: SpendBoundary
    uncertainty: Uncertainty = Uncertainty()


class OptimizerSection(Record):
    """`optimizer_matrix:`, of an optimizer-matrix plan. The matrix's own scenarios are the plan's tasks."""

    candidates: tuple[Candidate, ...] = Field(min_length=1)
    routing: dict[Slug, Routing]  # by arm
    roles: Roles = Roles()
    probe: ProbeBoundary
    calibration: tuple[RelativePath, ...] = ()
    pilot: tuple[RelativePath, ...] = ()
    selection: DrawnHoldout | None = None
