"""What a logical run cost, charge by charge: the metered model cost, and every charge beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controller.domain.dataset import LogicalRunRow
from controller.domain.money import usd_from_text


@dataclass(frozen=True, slots=True)
class Amount:
    """One charge; `value` is None while it is not settled, and then `settled` is the part that is."""

    kind: str
    currency: str
    value: Fraction | None
    settled: Fraction


def amounts_of(row: LogicalRunRow) -> Iterator[Amount]:
    """The model's cost over every attempt, then the other charges. An invalid run's model cost is not settled."""
    known = [usd_from_text(attempt.usd) for attempt in row.attempts if attempt.usd is not None]
    model = None if row.usd is None or row.outcome == "invalid" else usd_from_text(row.usd)
    yield Amount("model", row.currency, model, sum(known, Fraction(0)))
    for charge in row.charges:
        value = None if charge.amount is None else usd_from_text(charge.amount)
        yield Amount(charge.kind, charge.currency, value, value or Fraction(0))


def counted_twice(rows: Sequence[LogicalRunRow], name: str) -> Iterator[str]:
    """Every charge whose id came before, by line."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        for charge in row.charges:
            if charge.id in first:
                yield f"{name}:{number}: charges: {charge.id!r} is counted twice, first on line {first[charge.id]}"
            first.setdefault(charge.id, number)
