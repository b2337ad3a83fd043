"""What cost-index freezes before anything runs, as far as the analysis needs it.

The methodology names ten outcomes and six stacks. A frozen plan may name others; then its own cells are the ones that
a qualified comparison needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from controller.domain.dataset import USD, ChargeKind, Currency
from controller.domain.names import Name
from controller.domain.plan import Seed
from controller.domain.record import Record

METHODOLOGY: Final = "1.0"
OUTCOMES: Final = 10
STACKS: Final = 6
RESAMPLES: Final = 10_000
CountedKind = Literal["model"] | ChargeKind
COUNTED: Final[tuple[CountedKind, ...]] = ("model", "tool", "compute", "human_verification")
# An outcome names its own stream of draws, and the label of a stream is ASCII.
OUTCOME_PATTERN: Final = r"^[!-~]([ -~]{0,78}[!-~])?$"
_RATE_PATTERN: Final = r"^(0|[1-9][0-9]{0,12})(\.[0-9]{1,30})?$"


def _in_the_calendar(text: str) -> str:
    date.fromisoformat(text)
    return text


Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_in_the_calendar)]


class Conversion(Record):
    """One frozen rule: so many units of the plan's currency for one unit of another, as published on a day."""

    from_currency: Currency
    rate: Annotated[str, StringConstraints(pattern=_RATE_PATTERN)]
    dated: Day
    source: str = Field(min_length=1)

    @property
    def exact(self) -> Fraction:
        """The rate as an exact number."""
        return Fraction(self.rate)


class Instance(Record):
    """One predeclared task instance; repeated seeds of it are further instances of the same cluster."""

    task: Name
    cluster: Name
    replicates: int = Field(default=1, ge=1, le=100)


class OutcomeEntry(Record):
    """One outcome with its task instances, which are the same for every stack."""

    id: Annotated[str, StringConstraints(pattern=OUTCOME_PATTERN)]
    instances: tuple[Instance, ...] = Field(min_length=1)


class CostIndexPlan(Record):
    """The frozen cohort and the frozen boundary of spend."""

    schema_version: Literal["fairtrial.cost-index-plan/1"] = "fairtrial.cost-index-plan/1"
    methodology: Literal["1.0"] = METHODOLOGY
    frozen_on: Day
    seed: Seed
    outcomes: tuple[OutcomeEntry, ...] = Field(min_length=1)
    stacks: tuple[Name, ...] = Field(min_length=1)
    currency: Currency = USD
    conversions: tuple[Conversion, ...] = ()
    counted: tuple[CountedKind, ...] = COUNTED  # the boundary: charges of other kinds are disclosed and not counted
    exclusions: tuple[str, ...] = ()  # published beside the result

    @model_validator(mode="after")
    def _is_sound(self) -> CostIndexPlan:
        found = list(_problems(self))
        if found:
            raise ValueError("; ".join(found))
        return self


def _problems(plan: CostIndexPlan) -> Iterator[str]:
    tasks = [instance.task for outcome in plan.outcomes for instance in outcome.instances]
    named: tuple[tuple[str, list[str]], ...] = (
        ("outcomes", [outcome.id for outcome in plan.outcomes]),
        ("tasks", tasks),
        ("stacks", list(plan.stacks)),
        ("counted", list(plan.counted)),
        ("conversions", [rule.from_currency for rule in plan.conversions]),
    )
    for name, ids in named:
        for one, count in sorted(Counter(ids).items()):
            if count > 1:
                yield f"{name}: {one!r} is given twice"
    if "model" not in plan.counted:
        yield "counted: the model's charges are always within the boundary"
    for rule in plan.conversions:
        if rule.from_currency == plan.currency:
            yield f"conversions: {plan.currency} needs no conversion into itself"
        if rule.exact == 0:
            yield f"conversions: {rule.from_currency}: a rate of zero makes spend vanish"
        if rule.dated > plan.frozen_on:
            yield f"conversions: {rule.from_currency}: dated {rule.dated}, after the freeze on {plan.frozen_on}"


def fit_to_label(outcome: str) -> bool:
    """True when the outcome's name can stand in the label of its stream of draws."""
    return re.fullmatch(OUTCOME_PATTERN, outcome) is not None
