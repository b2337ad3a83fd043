"""What a planned round could show, before money is spent: assumptions in, figures out.

The figures are decimal strings, rounded for readers. No analysis and no decision reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from controller.analyse.plan import ARMS_MAX
from controller.domain.limits import TASKS_MAX
from controller.domain.record import Record, field_faults
from controller.errors import InvalidInput
from controller.protocols.harness_round.decision import TieBreak
from controller.protocols.harness_round.manifest import REPLICATES

PLACES_MAX: Final = 6  # of an assumption: floats hold all that is computed from it
COST_LOG_SD: Final = Decimal("1.07")  # of per-task cost ratios in simulations of ordinary rounds
# Spreads of per-task differences in simulations: most tasks always solved, many 0/3 and 3/3, a moderate mixture.
USUAL_SPREADS: Final = {"saturated": Decimal("0.17"), "wide": Decimal("0.27"), "moderate": Decimal("0.37")}

Level = Literal["unadjusted", "first Holm step"]
Positive = Annotated[Decimal, Field(gt=0, le=10, decimal_places=PLACES_MAX)]
Spread = Annotated[Decimal, Field(gt=0, le=Decimal("1.5"), decimal_places=PLACES_MAX)]  # two tasks reach the root of 2
Rate = Annotated[Decimal, Field(gt=0, lt=1, decimal_places=PLACES_MAX)]
Percent = Annotated[int, Field(ge=1, le=99)]
Several = Field(max_length=20)  # of one assumption; figures are given for every combination


class RoundAssumptions(Record):
    """A planned harness-round. Without any assumption about the spread of differences, three usual ones are shown."""

    protocol: Literal["harness-round"] = "harness-round"
    tasks: int = Field(ge=2, le=TASKS_MAX)
    repeats: int = Field(default=REPLICATES, ge=1, le=10)
    arms: int = Field(default=2, ge=2, le=ARMS_MAX)
    success_rate: Rate | None = None  # gives a spread: that of tasks which are all equally hard
    difference_sd: Annotated[
        tuple[Spread, ...], Several
    ] = ()  # of the per-task differences of success rates between two arms
    cost_log_sd: Positive = COST_LOG_SD  # of the logarithms of per-task cost ratios
    time_log_sd: Positive | None = None  # of the logarithm of the p90 ratio, times the root of the number of tasks
    savings_percent: Annotated[tuple[Percent, ...], Several] = (10, 20, 30)  # true savings to plan for
    lead_points: Annotated[Decimal, Field(ge=-100, le=100, decimal_places=PLACES_MAX)] = Decimal(
        0
    )  # of the cheaper or faster arm's success


class GateAssumptions(Record):
    """A planned optimizer-matrix."""

    protocol: Literal["optimizer-matrix"]
    cells: int = Field(default=30, ge=1, le=200)  # per policy
    policies: int = Field(default=4, ge=2, le=50)
    success_rate: Annotated[tuple[Rate, ...], Several] = (Decimal("0.7"), Decimal("0.8"), Decimal("0.9"))


class IndexAssumptions(Record):
    """A planned cost-index: independent instances of one outcome under one stack."""

    protocol: Literal["cost-index"]
    instances: int = Field(ge=2, le=1_000)
    success_rate: Annotated[tuple[Rate, ...], Several] = (Decimal("0.3"), Decimal("0.5"), Decimal("0.8"))


Assumptions = RoundAssumptions | GateAssumptions | IndexAssumptions
_PROTOCOLS: Final[Mapping[str, type[RoundAssumptions] | type[GateAssumptions] | type[IndexAssumptions]]] = {
    "harness-round": RoundAssumptions,
    "optimizer-matrix": GateAssumptions,
    "cost-index": IndexAssumptions,
}
_LISTS: Final = ("difference_sd", "success_rate", "savings_percent")


def assumptions_of(fields: Mapping[str, Any], *, name: str) -> Assumptions:
    """The assumptions that these fields make; one number serves as a list of one.

    Raises InvalidInput with one line per field that is unknown, absent or out of range. `name` is their source's.
    """
    protocol = fields.get("protocol", "harness-round")
    kind = _PROTOCOLS.get(protocol) if isinstance(protocol, str) else None
    if kind is None:
        raise InvalidInput(f"{name}: protocol: must be one of {', '.join(_PROTOCOLS)}")
    single = kind is RoundAssumptions
    listed = {
        key: [value]
        if key in _LISTS and not isinstance(value, list) and not (key == "success_rate" and single)
        else value
        for key, value in fields.items()
    }
    try:
        return kind.model_validate_json(json.dumps(listed))
    except ValidationError as error:
        raise InvalidInput("\n".join(f"{name}: {fault}" for fault in field_faults(error))) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: not a plain mapping of names to numbers: {error}") from error


class Sensitivity(Record):
    """What success differences can be told apart, under one assumed spread and at one level."""

    scenario: str
    difference_sd: str
    level: Level
    detectable_points: str  # by 80 % of rounds
    tasks_for_margin: int | str  # so that 80 % of rounds of two equal arms put the success bound above the margin
    lead_needed_points: str  # observed lead that puts it there with the planned tasks; negative: it may trail
    tie_within_margin_if_equal: str  # the probability that success ties and the bound is above the margin


class Saving(Record):
    """How many tasks put a ratio's interval below 1 in 80 % of rounds, for one true saving."""

    criterion: TieBreak
    saving_percent: int
    level: Level
    tasks_needed: int | str


class Firing(Record):
    """How probable each conclusion about one pair is with the planned tasks.

    The arm that is cheaper (or, for time, equally dear and faster) leads by `lead_points` in success.
    """

    scenario: str
    level: Level
    criterion: TieBreak
    saving_percent: int
    success_decides: str
    tie_break_fires: str


class Pilot(Record):
    """Where measured assumptions come from."""

    dataset: str
    tasks: int
    pairs: int  # qualified ones, over which the middle and the widest spread are taken
    measured: tuple[str, ...]  # the assumptions that it gives
    rehearsal: bool


class RoundPlanning(Record):
    """The answer for a planned harness-round."""

    schema_version: Literal["fairtrial.planning/1"] = "fairtrial.planning/1"
    assumptions: RoundAssumptions
    pilot: Pilot | None
    comparisons: int
    logical_runs: int
    first_step_level: str
    first_step_k: int  # how many replicates a tail holds there; 0: nothing can be rejected
    resamples: int
    successful_tasks_needed: int | None  # so that a cost ratio's interval is expected to be bounded
    successful_tasks_needed_at_first_step: int | None
    sensitivities: tuple[Sensitivity, ...]
    savings: tuple[Saving, ...]
    tie_breaks: tuple[Firing, ...]
    notes: tuple[str, ...]


class GateChance(Record):
    success_rate: str
    passes_80_percent: str
    passes_95_percent_of_equal: str


class GatePlanning(Record):
    """The answer for a planned optimizer-matrix."""

    schema_version: Literal["fairtrial.planning/1"] = "fairtrial.planning/1"
    assumptions: GateAssumptions
    gates: tuple[GateChance, ...]
    false_pass_upper_if_none: str  # Wilson's upper end after no false pass in any cell
    false_pass_upper_if_none_of_one_policy: str
    notes: tuple[str, ...]


class UnboundedChance(Record):
    success_rate: str
    upper_end_unbounded: str


class IndexPlanning(Record):
    """The answer for a planned cost-index."""

    schema_version: Literal["fairtrial.planning/1"] = "fairtrial.planning/1"
    assumptions: IndexAssumptions
    cost_per_success: tuple[UnboundedChance, ...]
    notes: tuple[str, ...]


Planning = RoundPlanning | GatePlanning | IndexPlanning
