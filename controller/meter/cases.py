"""Case files: priced vectors anyone can bring, in the form of `tests/assets/metering.json`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from controller.domain.money import NANO_PER_USD
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.errors import FairtrialError, InvalidInput
from controller.meter.pricing import price_usage


def card_of_case(name: str, raw: Mapping[str, Any]) -> RateCard:
    """A card of a case file (`bands` of dollars per million tokens, `per_unit` in dollars) in the domain's form.

    Raises InvalidInput naming the card when a price is not a whole number of nano-dollars.
    """
    try:
        bands = tuple(
            RateBand(
                over=band["over"] or 0,
                nano_usd_per_million={key: _nano(name, key, text) for key, text in band["per_mtok"].items()},
            )
            for band in raw["bands"]
        )
        units = {key: _nano(name, key, text) for key, text in raw.get("per_unit", {}).items()}
        row = RateRow(provider="case", model=name, bands=bands, nano_usd_per_unit=units)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(f"card {name!r} is malformed: {error}") from None
    return RateCard(name=name, source="case file", retrieved_on="1970-01-01", rows=(row,))


def _nano(card: str, key: str, text: str) -> int:
    nano = Fraction(text) * NANO_PER_USD
    if nano.denominator != 1 or nano < 0:
        raise InvalidInput(f"card {card!r}: price of {key!r} {text!r} is not a whole number of nano-dollars")
    return int(nano)


def run_case(case: Mapping[str, Any], cards: Mapping[str, RateCard]) -> dict[str, Any]:
    """What we compute for one case: `{"id", "classes", "units", "multiplier", "usd"}`, or `{"id", "error"}`."""
    name = str(case.get("id", ""))
    card = cards.get(str(case.get("card")))
    if card is None:
        return {"id": name, "error": f"InvalidInput: the case file has no card {case.get('card')!r}"}
    try:
        priced = price_usage(str(case.get("dialect")), case.get("input"), card)
    except FairtrialError as error:
        return {"id": name, "error": f"{type(error).__name__}: {error}"}
    answer = priced.model_dump(exclude={"zero_bill_rule"})
    return {"id": name, **answer, **({"zero_bill_rule": priced.zero_bill_rule} if priced.zero_bill_rule else {})}


def run_cases(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every priced case of a case file, in its order. Raises InvalidInput for a malformed card."""
    cards = {name: card_of_case(name, raw) for name, raw in document.get("cards", {}).items()}
    return [run_case(case, cards) for case in document.get("priced", [])]
