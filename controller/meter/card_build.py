"""A rate card from two public price maps that agree, or every place where they do not. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pydantic import ValidationError

from controller.domain.money import NANO_PER_USD, usd_to_text
from controller.domain.price_map import CALL, GEO, Listing, PricePoint, Wanted
from controller.domain.rate_card import RateBand, RateCard, RateRow, Surcharge
from controller.domain.record import field_faults
from controller.errors import InvalidInput, PricesDisagree


@dataclass(frozen=True, slots=True)
class Compared:
    """One wanted row as each map lists it."""

    wanted: Wanted
    first: Listing
    second: Listing

    @property
    def points(self) -> list[PricePoint]:
        """Every price that either map has."""
        return sorted({*self.first.prices, *self.second.prices})


def build_card(
    name: str, rows: Sequence[Compared], *, single_sources: Collection[str], retrieved_on: str, maps: tuple[str, str]
) -> RateCard:
    """The card, if the maps give the same exact price wherever both have one, and every other price was allowed.

    Raises PricesDisagree with one line per disagreement and per price that only one map has; InvalidInput for an
    allowance that nothing needs, for a model neither map prices, and for a price that a card cannot hold.
    """
    unlike, single = _faults(rows, maps)
    if unlike or not set(single) <= set(single_sources):
        unnamed = {point: line for point, line in single.items() if point not in single_sources}
        total = sum(len(row.points) for row in rows)
        summary = f"of {total} prices, {len(unlike)} disagree and {len(unnamed)} are in one map only"
        remedy = (
            "Look up each price at the provider's own page; nothing was written."
            if unlike
            else "Check each at the provider's own page, then name it with --allow-single-source; nothing was written."
        )
        raise PricesDisagree("\n".join([summary, *unlike, *unnamed.values()]), remedy=remedy)
    needless = sorted(set(single_sources) - set(single))
    if needless:
        raise InvalidInput(f"--allow-single-source {needless[0]}: no price of that name is in one map only")
    try:
        return RateCard(name=name, rows=tuple(_row(row, retrieved_on) for row in rows))
    except ValidationError as error:
        raise InvalidInput("\n".join(f"the card: {fault}" for fault in field_faults(error))) from None


def _faults(rows: Sequence[Compared], maps: tuple[str, str]) -> tuple[list[str], dict[str, str]]:
    unlike: list[str] = []
    single: dict[str, str] = {}
    for row in rows:
        if not row.points:
            wanted = row.wanted
            raise InvalidInput(
                f"{wanted.provider}/{wanted.model}: no map prices it in tier {wanted.tier}, speed {wanted.speed}"
            )
        for point in row.points:
            first, second = row.first.prices.get(point), row.second.prices.get(point)
            if first is not None and second is not None:
                if first != second:
                    unlike.append(f"{point}: {_shown(first)} in {maps[0]}, {_shown(second)} in {maps[1]}")
            else:
                known = first if first is not None else second
                only = maps[0] if first is not None else maps[1]
                single[str(point)] = f"{point}: {_shown(known)} in {only} only"
    return unlike, single


def _shown(price: Fraction | None) -> str:
    return "nothing" if price is None else usd_to_text(price)


def _row(row: Compared, retrieved_on: str) -> RateRow:
    prices = {point: row.first.prices.get(point, row.second.prices.get(point)) for point in row.points}
    bands: dict[int, dict[str, int]] = defaultdict(dict)
    units: dict[str, int] = {}
    surcharges: list[Surcharge] = []
    for point, price in prices.items():
        if price is None:
            continue
        if point.name.startswith(GEO):
            surcharges.append(
                Surcharge(
                    geo=point.name.removeprefix(GEO),
                    token_multiplier=usd_to_text(price),
                    source=(row.second if point in row.second.prices else row.first).source,
                    retrieved_on=retrieved_on,
                )
            )
        elif point.name.startswith(CALL):
            units[point.name.removeprefix(CALL)] = _nano(price, point)
        else:
            bands[point.over][point.name] = _nano(price, point)
    wanted = row.wanted
    return RateRow(
        provider=wanted.provider,
        model=wanted.model,
        tier=wanted.tier,
        speed=wanted.speed,
        source=f"{row.first.source}; checked against {row.second.source}"[:500],
        retrieved_on=retrieved_on,
        effective_from=row.first.effective_from,
        effective_to=row.first.effective_to,
        bands=tuple(RateBand.model_validate({"over": over, "usd_per_million": bands[over]}) for over in sorted(bands)),
        nano_usd_per_unit=units,
        surcharges=tuple(surcharges),
    )


def _nano(price: Fraction, point: PricePoint) -> int:
    nano = price * NANO_PER_USD
    if nano.denominator != 1:
        raise InvalidInput(f"{point}: {usd_to_text(price)} has more than nine decimals, which a card cannot hold")
    return int(nano)


def left_out(rows: Sequence[Compared]) -> tuple[str, ...]:
    """Prices that a map has and a card has no class for, in order: usage of that kind cannot be priced."""
    return tuple(dict.fromkeys(name for row in rows for name in (*row.first.left_out, *row.second.left_out)))
