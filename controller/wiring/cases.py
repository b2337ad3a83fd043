"""Anyone's numbers through our arithmetic: one usage record, or a file of metering cases."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from controller.domain.json_files import read_json
from controller.domain.money import usd_to_text
from controller.domain.retail import retail_usd
from controller.errors import InvalidInput
from controller.meter import cases as metering
from controller.meter import price_usage
from controller.wiring.cards import digest_of, read_card, read_retail
from controller.wiring.inputs import read_input


def price_record(usage: Path, card: Path, dialect: str, retail: Path | None = None) -> dict[str, Any]:
    """Classes, units, exact cost, the row that priced it and the card's digest; the retail figure if there is a policy.

    Raises UnpricedUsage, InvalidInput naming file and field.
    """
    rates = read_card(card)
    policy = read_retail(retail) if retail else None
    answer = price_usage(dialect, _json(usage), rates).model_dump(mode="json")
    answer["card_digest"] = digest_of(rates)
    if policy is not None:
        figure = usd_to_text(retail_usd([Fraction(answer["usd"])], policy))
        answer["retail"] = {"policy": policy.name, "policy_digest": digest_of(policy), "usd": figure}
    return answer


def metering_cases(source: Path) -> list[dict[str, Any]]:
    """Every priced case of the file, in its order."""
    document = _json(source)
    if not isinstance(document, dict):
        raise InvalidInput(f"{source}: must be an object with `cards` and `priced`")
    return metering.run_cases(document)


def _json(path: Path) -> Any:
    # An answer may hold floats that are no counts, such as its temperature; a count that is one is refused by name.
    return read_json(read_input(path), str(path), floats=True)
