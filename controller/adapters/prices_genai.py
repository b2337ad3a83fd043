"""The price map of the `genai-prices` package, read from the data it carries: no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from typing import Final

from controller.domain.money import EXACT
from controller.domain.price_map import CALL, SHORT_WRITES, Listing, PricePoint, Wanted
from controller.errors import InvalidInput

PROVIDERS: Final[Mapping[str, str]] = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}
# `cache_write_mtok` is each provider's shortest lifetime.
CLASSES: Final[Mapping[str, str]] = {
    "input_mtok": "in",
    "output_mtok": "out",
    "cache_read_mtok": "read",
    "cache_write_1h_mtok": "w1h",
    "input_audio_mtok": "in_audio",
    "output_audio_mtok": "out_audio",
    "input_image_mtok": "in_image",
    "output_image_mtok": "out_image",
}
PER_THOUSAND_CALLS: Final[Mapping[str, str]] = {
    "web_searches_kcount": "web_search",
    "storage_searches_kcount": "file_search",
}


def name() -> str:
    """The map and its version."""
    return f"genai-prices {version('genai-prices')}"


def listing(wanted: Wanted, on: date) -> Listing:
    """What the map says of the row on that day.

    Raises InvalidInput for a provider or model it does not know, and for prices that depend on the hour.
    """
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TieredPrices

    if wanted.provider not in PROVIDERS:
        raise InvalidInput(f"provider {wanted.provider!r} is not one of {', '.join(PROVIDERS)}")
    try:
        provider, model = get_snapshot().find_provider_model(wanted.model, None, PROVIDERS[wanted.provider], None)
    except LookupError:
        raise InvalidInput(f"{wanted.provider}/{wanted.model}: {name()} knows no such model") from None
    source = f"{(provider.pricing_urls or [provider.name])[0]} (by {name()}, model {model.id})"
    context = _context(wanted)
    at = datetime(on.year, on.month, on.day, tzinfo=UTC)
    # The package falls back to standard prices for a context that it does not know; such prices would be invented.
    if any(not _has_variant(model.price_variants or (), key, value, at) for key, value in context.items()):
        return Listing({}, source)
    since, until = _in_force(model.prices, on, f"{wanted.provider}/{wanted.model}")
    prices: dict[PricePoint, Fraction] = {}
    left_out: list[str] = []
    found = {key: value for key, value in vars(model.get_prices(at, context or None)).items() if value is not None}
    tiers = [tier.start for value in found.values() if isinstance(value, TieredPrices) for tier in value.tiers]
    for key, value in found.items():
        called = _class(wanted.provider, key)
        if called is None:
            left_out.append(f"{wanted.provider}/{wanted.model}: {key}")
            continue
        per = 1000 if called.startswith(CALL) else 1
        for over in [0] if called.startswith(CALL) else sorted({0, *tiers}):
            prices[PricePoint(wanted, over, called)] = _exact(_at(value, over)) / per
    return Listing(prices, source, tuple(left_out), since, until)


def _context(wanted: Wanted) -> dict[str, str]:
    context: dict[str, str] = {}
    if wanted.tier != "standard":
        context["processing" if wanted.tier == "batch" else "service_tier"] = wanted.tier
    if wanted.speed != "standard":
        context["speed"] = wanted.speed
    return context


def _has_variant(variants: object, key: str, value: str, at: datetime) -> bool:
    from genai_prices.types import PriceVariant

    return any(
        isinstance(variant, PriceVariant)
        and variant.when == {key: value}
        and (variant.constraint is None or variant.constraint.active(at))
        for variant in (variants if isinstance(variants, list | tuple) else ())
    )


def _class(provider: str, key: str) -> str | None:
    if key == "cache_write_mtok":
        return SHORT_WRITES.get(provider)
    if key in PER_THOUSAND_CALLS:
        return CALL + PER_THOUSAND_CALLS[key]
    return CLASSES.get(key)


def _at(value: object, over: int) -> Decimal:
    """The price in the band over that threshold: a price without tiers holds in all of them."""
    from genai_prices.types import TieredPrices

    if not isinstance(value, TieredPrices):
        return value if isinstance(value, Decimal) else Decimal(str(value))
    return next((tier.price for tier in reversed(value.tiers) if tier.start <= over and over > 0), value.base)


def _exact(value: Decimal) -> Fraction:
    return Fraction(EXACT.create_decimal(value))


def _in_force(prices: object, on: date, place: str) -> tuple[str | None, str | None]:
    """First and last day of the prices that hold on that day, where the map names them."""
    starts = sorted(_starts(prices, place))
    since = [start for start in starts if start <= on]
    later = [start for start in starts if start > on]
    return (
        since[-1].isoformat() if since else None,
        (later[0] - timedelta(days=1)).isoformat() if later else None,
    )


def _starts(prices: object, place: str) -> Iterator[date]:
    from genai_prices.types import StartDateConstraint

    for conditional in prices if isinstance(prices, list) else ():
        if isinstance(conditional.constraint, StartDateConstraint):
            yield conditional.constraint.start_date
        elif conditional.constraint is not None:
            raise InvalidInput(f"{place}: priced by the hour of the day, which a card cannot say")
