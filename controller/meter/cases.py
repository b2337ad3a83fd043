"""Case files: priced vectors anyone can bring, in the form of `tests/assets/metering.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.domain.rate_card import RateBand, RateCard, RateRow, Surcharge, nano_usd
from controller.errors import FairtrialError, InvalidInput
from controller.meter.pricing import price_usage

# A case file's cards have no field for the place of inference; its cases use the ones that providers document.
# Both state ten per cent on every token class, and exempt what is counted by the call.
DOCUMENTED: Final = (
    Surcharge(
        geo="us",
        token_multiplier="1.1",  # noqa: S106  a price
        source="https://platform.claude.com/docs/en/about-claude/pricing, data residency",
        retrieved_on="2026-08-22",
    ),
    Surcharge(
        geo="eu",
        token_multiplier="1.1",  # noqa: S106  a price
        source="https://developers.openai.com/api/docs/guides/data-residency",
        retrieved_on="2026-08-22",
    ),
)
UNDATED: Final = "1970-01-01"


def card_of_case(name: str, raw: Mapping[str, Any]) -> RateCard:
    """A card of a case file (`bands` of dollars per million tokens, `per_unit` in dollars) in the domain's form.

    Raises InvalidInput naming the field, such as `cards.A.bands[1].per_mtok.read`.
    """
    place = f"cards.{name}"
    try:
        bands = tuple(
            RateBand(
                over=0 if band["over"] is None else band["over"],
                nano_usd_per_million=_prices(f"{place}.bands[{position}].per_mtok", band["per_mtok"]),
            )
            for position, band in enumerate(raw["bands"])
        )
        row = RateRow(
            provider="case",
            model=name,
            source="case file",
            retrieved_on=UNDATED,
            bands=bands,
            nano_usd_per_unit=_prices(f"{place}.per_unit", raw.get("per_unit", {})),
            surcharges=DOCUMENTED,
        )
        return RateCard(name=name, rows=(row,))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(f"{place} is malformed: {error}") from None


def _prices(place: str, texts: Mapping[str, object]) -> Any:
    found: dict[str, int] = {}
    for key, text in texts.items():
        try:
            found[key] = nano_usd(text)
        except ValueError as error:
            raise InvalidInput(f"{place}.{key}: {error}") from None
    return found


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
    answer = priced.model_dump(include={"classes", "units", "multiplier", "usd"})
    return {"id": name, **answer, **({"zero_bill_rule": priced.zero_bill_rule} if priced.zero_bill_rule else {})}


def run_cases(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every priced case of a case file, in its order. Raises InvalidInput for another kind of file, or a wrong card."""
    cards, cases = document.get("cards"), document.get("priced")
    if not isinstance(cards, dict) or not isinstance(cases, list):
        raise InvalidInput("a case file must hold `cards`, an object, and `priced`, a list")
    strange = [position for position, case in enumerate(cases) if not isinstance(case, dict)]
    if strange:
        raise InvalidInput(f"priced[{strange[0]}]: must be an object")
    rates = {name: card_of_case(name, raw) for name, raw in cards.items()}
    return [run_case(case, rates) for case in cases]
