"""A second public price map, `model_prices_and_context_window.json` of LiteLLM's form, from a file the user names.

Its numbers are JSON floats; they are taken from the text, as decimals, and never pass through a binary float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, DecimalException
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from controller.domain.ids import sha256_digest
from controller.domain.json_files import once
from controller.domain.money import EXACT
from controller.domain.price_map import CALL, GEO, SHORT_WRITES, Listing, PricePoint, Wanted
from controller.errors import InvalidInput
from controller.ports.named_files import read_named

MAP_BYTES_MAX: Final = 64 * 2**20  # the whole map has under 4 MB
PREFIXES: Final[Mapping[str, str]] = {"anthropic": "", "openai": "", "gemini": "gemini/"}
CLASSES: Final[Mapping[str, str]] = {
    "input_cost_per_token": "in",
    "output_cost_per_token": "out",
    "cache_read_input_token_cost": "read",
    "cache_creation_input_token_cost_above_1hr": "w1h",
    "cache_creation_input_token_cost_above_12hr": "w12h",
    "cache_creation_input_token_cost": "",  # the provider's shortest lifetime
    "input_cost_per_audio_token": "in_audio",
    "output_cost_per_audio_token": "out_audio",
    "input_cost_per_image_token": "in_image",
    "output_cost_per_image_token": "out_image",
}
TIERS: Final[Mapping[str | None, str]] = {None: "standard", "batches": "batch", "flex": "flex", "priority": "priority"}
KEY: Final = re.compile(
    rf"(?P<base>{'|'.join(sorted(CLASSES, key=len, reverse=True))})"
    r"(?:_above_(?P<thousands>[0-9]{1,6})k_tokens)?(?:_(?P<tier>batches|flex|priority))?"
)
UPLIFT: Final = "regional_processing_uplift_multiplier_"
TOKENS: Final = 1_000_000
DIGITS_MAX: Final = 30  # before or after the point; a longer number is no price


class SecondMap:
    """The map in that file."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidInput for a file that is no such map."""
        try:
            data = read_named(path, bytes_max=MAP_BYTES_MAX)
        except OSError as error:
            raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
        self.name = path.name
        self._source = f"{path.name} {sha256_digest(data)}"
        self._where = str(path)
        try:
            self._models = json.loads(
                data.decode("utf-8"),
                object_pairs_hook=once,
                parse_float=_decimal,
                parse_int=_decimal,
                parse_constant=_decimal,
            )
        except (ValueError, RecursionError, DecimalException) as error:
            raise InvalidInput(f"{path}: not readable as a price map: {error}") from None
        if not isinstance(self._models, dict):
            raise InvalidInput(f"{path}: a price map is an object of models")

    def listing(self, wanted: Wanted) -> Listing:
        """What the map says of the row; an empty listing for a model it does not have.

        Raises InvalidInput naming the field of what is no price.
        """
        entry = self._models.get(PREFIXES.get(wanted.provider, f"{wanted.provider}/") + wanted.model)
        if not isinstance(entry, dict) or entry.get("litellm_provider") != wanted.provider:
            return Listing({}, self._source)
        prices: dict[PricePoint, Fraction] = {}
        left_out: list[str] = []
        factor = self._speed(entry, wanted)
        for key, value in entry.items():
            place = f"{self._where}: {wanted.model}.{key}"
            match = KEY.fullmatch(key)
            name = match and (CLASSES[match["base"]] or SHORT_WRITES.get(wanted.provider))
            if match and name and TIERS[match["tier"]] == wanted.tier and factor is not None:
                over = 1000 * int(match["thousands"] or 0)
                prices[PricePoint(wanted, over, name)] = _price(value, place) * TOKENS * factor
            elif not match and isinstance(value, Decimal) and "cost" in key:
                left_out.append(f"{wanted.provider}/{wanted.model}: {key}")
        if prices:
            prices |= {PricePoint(wanted, 0, name): found for name, found in self._calls_and_places(entry, wanted)}
        return Listing(prices, self._source, tuple(left_out))

    def _speed(self, entry: Mapping[str, Any], wanted: Wanted) -> Fraction | None:
        """What a speed multiplies prices by, in this map's own words; None when it does not know the speed."""
        if wanted.speed == "standard":
            return Fraction(1)
        multiplier = self._section(entry, "provider_specific_entry", wanted).get(wanted.speed)
        if multiplier is None or wanted.tier != "standard":
            return None
        return _price(multiplier, f"{self._where}: {wanted.model}.provider_specific_entry.{wanted.speed}")

    def _calls_and_places(self, entry: Mapping[str, Any], wanted: Wanted) -> Iterator[tuple[str, Fraction]]:
        place = f"{self._where}: {wanted.model}"
        sizes = self._section(entry, "search_context_cost_per_query", wanted)
        each = {_price(value, f"{place}.search_context_cost_per_query.{size}") for size, value in sizes.items()}
        if len(each) == 1:
            yield f"{CALL}web_search", each.pop()
        for key, value in entry.items():
            if key.startswith(UPLIFT):
                yield GEO + key.removeprefix(UPLIFT), _price(value, f"{place}.{key}")
        inference = self._section(entry, "provider_specific_entry", wanted).get("us")
        if inference is not None:
            yield f"{GEO}us", _price(inference, f"{place}.provider_specific_entry.us")

    def _section(self, entry: Mapping[str, Any], key: str, wanted: Wanted) -> Mapping[str, Any]:
        section = entry.get(key, {})
        if not isinstance(section, dict):
            raise InvalidInput(f"{self._where}: {wanted.model}.{key}: not an object")
        return section


def _decimal(text: str) -> Decimal:
    return EXACT.create_decimal(text)


def _price(value: object, place: str) -> Fraction:
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0 or abs(value.adjusted()) > DIGITS_MAX:
        raise InvalidInput(f"{place}: {str(value)[:40]!r} is not a price")
    return Fraction(value)
