"""The funded target of the optimizer matrix, by cross-multiplication of integers: no threshold is ever a float."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class FundedGate:
    """`saves_30` is None when a cost is unknown: unknown cost cannot contribute to savings."""

    absolute_80: bool
    relative_95: bool
    saves_30: bool | None

    @property
    def passed(self) -> bool:
        return self.absolute_80 and self.relative_95 and self.saves_30 is True


def funded_gate(
    adaptive: int, frontier: int, cells: int, *, adaptive_cost: Fraction | None, frontier_cost: Fraction | None
) -> FundedGate:
    """At least 80 % verified, at least 95 % of always-frontier's verified count, and at least 30 % lower total cost.

    A frontier that cost nothing leaves no saving to show, so the cost condition fails.
    """
    saves: bool | None = None
    if adaptive_cost is not None and frontier_cost is not None:
        saves = frontier_cost > 0 and 100 * adaptive_cost <= 70 * frontier_cost
    return FundedGate(
        absolute_80=100 * adaptive >= 80 * cells,
        relative_95=100 * adaptive >= 95 * frontier,
        saves_30=saves,
    )
