"""The gates of the optimizer matrix, by cross-multiplication of integers: no threshold is ever a float.

None stands for what cannot be decided, because a cost is unknown or the baseline is not valid; it never passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from controller.domain.exact import UNBOUNDED, Exact

ABSOLUTE_PERCENT: Final = 80  # verified completion of adaptive, and of a valid frontier
RELATIVE_PERCENT: Final = 95  # of a valid frontier's verified rate
STRATUM_PERCENT: Final = 70  # of a valid frontier in every preregistered stratum
FUNDED_SAVING_PERCENT: Final = 30  # of the total cost
HISTORICAL_SAVING_PERCENT: Final = 20  # of the held-out median cost


@dataclass(frozen=True, slots=True)
class FundedGate:
    """`saves_30` is None when a cost is unknown: unknown cost cannot contribute to savings."""

    absolute_80: bool
    relative_95: bool
    saves_30: bool | None

    @property
    def passed(self) -> bool:
        return self.absolute_80 and self.relative_95 and self.saves_30 is True


@dataclass(frozen=True, slots=True)
class FrontierValidity:
    """Always-frontier is a baseline only if it verifies enough overall and in every stratum."""

    overall: bool
    strata: Mapping[str, bool]

    @property
    def valid(self) -> bool:
        return self.overall and bool(self.strata) and all(self.strata.values())


@dataclass(frozen=True, slots=True)
class AgainstPrompt:
    """How adaptive compares with prompt-only: `beats` on completion, or `tied` and `cheaper` per completion."""

    beats: bool
    tied: bool
    cheaper: bool | None

    @property
    def passed(self) -> bool:
        return self.beats or (self.tied and self.cheaper is True)


def at_least_percent(part: int, whole: int, percent: int) -> bool:
    """True when `part` is at least so many percent of `whole`."""
    return 100 * part >= percent * whole


def needed(percent: int, whole: int) -> int:
    """The smallest count that is at least so many percent of `whole`: ceil(percent * whole / 100)."""
    return -(-percent * whole // 100)


def saves(cost: Fraction | None, baseline: Fraction | None, percent: int) -> bool | None:
    """True when `cost` is at least so many percent below the baseline; None when either is unknown.

    A baseline that cost nothing leaves no saving to show.
    """
    if cost is None or baseline is None:
        return None
    return baseline > 0 and 100 * cost <= (100 - percent) * baseline


def funded_gate(
    adaptive: int, frontier: int, cells: int, *, adaptive_cost: Fraction | None, frontier_cost: Fraction | None
) -> FundedGate:
    """At least 80 % verified, at least 95 % of always-frontier's verified count, and at least 30 % lower total cost.

    Both policies have `cells` runs. Whether the frontier is a valid baseline is asked of `frontier_validity`.
    """
    return FundedGate(
        absolute_80=at_least_percent(adaptive, cells, ABSOLUTE_PERCENT),
        relative_95=at_least_percent(adaptive, frontier, RELATIVE_PERCENT),
        saves_30=saves(adaptive_cost, frontier_cost, FUNDED_SAVING_PERCENT),
    )


def frontier_validity(verified: Mapping[str, int], cells: Mapping[str, int]) -> FrontierValidity:
    """Verified and predeclared runs of always-frontier, by stratum: 80 % overall, and ceil(7 n / 10) in each."""
    return FrontierValidity(
        overall=at_least_percent(sum(verified.values()), sum(cells.values()), ABSOLUTE_PERCENT),
        strata={name: at_least_percent(verified[name], count, STRATUM_PERCENT) for name, count in cells.items()},
    )


def effective_cost(cost: Fraction | None, verified: int) -> Exact | None:
    """Total cost per verified completion: None when it is unknown, unbounded without a completion."""
    if cost is None:
        return None
    return cost / verified if verified else UNBOUNDED


def against_prompt(
    adaptive: int, prompt_only: int, *, adaptive_cost: Fraction | None, prompt_cost: Fraction | None
) -> AgainstPrompt:
    """More verified completions, or as many at a strictly lower effective cost per verified completion."""
    ours, theirs = effective_cost(adaptive_cost, adaptive), effective_cost(prompt_cost, prompt_only)
    return AgainstPrompt(
        beats=adaptive > prompt_only,
        tied=adaptive == prompt_only,
        cheaper=None if ours is None or theirs is None else ours < theirs,
    )
