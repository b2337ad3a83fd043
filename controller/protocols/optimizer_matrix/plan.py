"""What optimizer-matrix freezes before the first run, as far as the analysis needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field, model_validator

from controller.domain.ids import Digest
from controller.domain.names import Name
from controller.domain.record import Record

ADAPTIVE: Final = "adaptive"
FRONTIER: Final = "always-frontier"
PROMPT_ONLY: Final = "prompt-only"
POLICIES_MAX: Final = 100


class Shape(Record):
    """The sizes of a matrix. The defaults are those of the frozen engineering matrix."""

    repositories: int = 3
    scenarios: int = 10
    categories: int = 6
    policies: int = 4
    repetitions: int = 3
    runs: int = 120
    holdouts: int = 4


FROZEN_SHAPE: Final = Shape()


class Scenario(Record):
    """One scenario: its repository is a cluster, its category the preregistered stratum."""

    id: Name
    repository: Name
    category: Name
    holdout: bool


class Roles(Record):
    """Which policy is which. A fourth policy, and any further one, is reported and compared with none."""

    adaptive: Name = ADAPTIVE
    frontier: Name = FRONTIER
    prompt_only: Name = PROMPT_ONLY


class Selection(Record):
    """The scenario that public randomness chose among the frozen holdouts, and the digest of its record."""

    scenario: str
    record_digest: Digest


class OptimizerPlan(Record):
    """The frozen matrix: every policy runs every scenario as often as `repetitions` says."""

    schema_version: Literal["fairtrial.optimizer-plan/1"] = "fairtrial.optimizer-plan/1"
    scenarios: tuple[Scenario, ...] = Field(min_length=1)
    policies: tuple[Name, ...] = Field(min_length=3, max_length=POLICIES_MAX)
    repetitions: int = Field(ge=1, le=100)
    roles: Roles = Roles()
    selection: Selection | None = None
    billing_basis: dict[str, str] = Field(default_factory=dict)  # by executor: what its costs are, such as list prices

    @model_validator(mode="after")
    def _is_sound(self) -> OptimizerPlan:
        found = list(_problems(self))
        if found:
            raise ValueError("; ".join(found))
        return self

    @property
    def shape(self) -> Shape:
        return Shape(
            repositories=len({scenario.repository for scenario in self.scenarios}),
            scenarios=len(self.scenarios),
            categories=len({scenario.category for scenario in self.scenarios}),
            policies=len(self.policies),
            repetitions=self.repetitions,
            runs=len(self.scenarios) * len(self.policies) * self.repetitions,
            holdouts=sum(scenario.holdout for scenario in self.scenarios),
        )


def _problems(plan: OptimizerPlan) -> Iterator[str]:
    ids = [scenario.id for scenario in plan.scenarios]
    for name, named in (("scenarios", ids), ("policies", list(plan.policies))):
        for one, count in sorted(Counter(named).items()):
            if count > 1:
                yield f"{name}: {one!r} is given twice"
    roles = (plan.roles.adaptive, plan.roles.frontier, plan.roles.prompt_only)
    if len(set(roles)) < len(roles):
        yield "roles: three different policies are needed"
    for role in roles:
        if role not in plan.policies:
            yield f"roles: {role!r} is not among the policies"
    holdouts = {scenario.id for scenario in plan.scenarios if scenario.holdout}
    if plan.selection is not None and plan.selection.scenario not in holdouts:
        yield f"selection: {plan.selection.scenario!r} is not a frozen holdout"
