"""One usage record or response, priced: what `fairtrial price` computes and what the meter settles with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from controller.domain.money import UsdText, usd_to_text
from controller.domain.rate_card import RateCard
from controller.domain.rating import Rate, RateKey, band_for, find_rate, price, prompt_tokens
from controller.domain.record import Record
from controller.domain.usage import Usage
from controller.errors import InvalidInput, UnpricedUsage
from controller.meter.dialects import READERS, Reading

# OpenAI answers name no place; the host that was asked is the place. What it costs there is the card's to say.
REGIONAL_HOSTS: Final[Mapping[str, str]] = {"us.api.openai.com": "us", "eu.api.openai.com": "eu"}


class MatchedRow(Record):
    """The row of the card that priced a request: under which conditions it was served, and by which band."""

    provider: str
    model: str
    tier: str
    speed: str
    geo: str
    band_over: int


class Priced(Record):
    """Billable classes and units of one response, and its exact cost. A documented zero bill has a rule and costs 0."""

    classes: dict[str, int]
    units: dict[str, int]
    multiplier: str
    usd: UsdText
    row: MatchedRow | None = None
    zero_bill_rule: str | None = None


def read_payload(dialect: str, payload: object) -> Reading:
    """Read a usage object, a response or a recorded stream.

    `dialect` is a reader's name, with `_sse` appended for a list of `[event, data]` pairs or of bare data objects.
    Raises InvalidInput for an unknown dialect or shape, UnpricedUsage for counters that contradict themselves.
    """
    name = dialect.removesuffix("_sse")
    if name not in READERS:
        raise InvalidInput(f"dialect {dialect!r} is not one of {', '.join(sorted(READERS))}, or one of them with _sse")
    reader = READERS[name]()
    if not dialect.endswith("_sse"):
        if not isinstance(payload, dict):
            raise InvalidInput(f"a usage record of dialect {dialect} must be a JSON object")
        reader.body(_unwrapped(payload))
        return reader.reading()
    if not isinstance(payload, Sequence) or isinstance(payload, str):
        raise InvalidInput(f"a recorded stream of dialect {dialect} must be a JSON array")
    for entry in payload:
        event, data = entry if isinstance(entry, list | tuple) and len(entry) == 2 else ("", entry)
        raw = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        try:
            reader.event(str(event), raw)
        except ValueError as error:
            raise InvalidInput(f"recorded stream of dialect {dialect}: {error}") from None
    return reader.reading()


def _unwrapped(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    response = payload.get("response")
    if isinstance(response, dict):
        return response
    bare = "usage" not in payload and "usageMetadata" not in payload and "metadata" not in payload
    if bare and any(key.lower().endswith(("tokens", "tokencount")) for key in payload):
        key = "usageMetadata" if "promptTokenCount" in payload else "usage"
        return {key: payload}
    return payload


def price_usage(dialect: str, payload: object, card: RateCard) -> Priced:
    """Classes, units and exact cost of one usage record under a card.

    The row is chosen by the served model, tier, speed and place where the payload names them. A payload that names no
    model needs a card of one model.
    Raises UnpricedUsage when the usage is missing or has no price; InvalidInput for a payload of the wrong shape.
    """
    reading = read_payload(dialect, payload)
    if reading.zero_bill_rule is not None:
        return Priced(classes={}, units={}, multiplier="1", usd="0", zero_bill_rule=reading.zero_bill_rule)
    if reading.error is not None:
        raise UnpricedUsage(reading.error)
    if reading.usage is None:
        raise UnpricedUsage("the payload carries no usage object, and missing usage is not zero")
    host = payload.get("host") if isinstance(payload, dict) else None
    geo = REGIONAL_HOSTS.get(str(host), reading.geo)
    key, rate = _rate(card, reading, geo)
    usd = cost(reading, rate)
    band = band_for(rate.row, prompt_tokens(reading.usage))
    return Priced(
        classes={str(name): count for name, count in reading.usage.tokens.items()},
        units=reading.usage.units,
        multiplier=usd_to_text(rate.token_multiplier),
        usd=usd_to_text(usd),
        row=MatchedRow(**key.model_dump(), band_over=band.over),
    )


def cost(reading: Reading, rate: Rate) -> Fraction:
    """The exact cost in USD of an answer with usage.

    Raises UnpricedUsage as `price`, and when counters that sum up several prompts meet prices by the length of each.
    """
    usage = reading.usage or Usage(tokens={})
    if reading.samplings > 1 and band_for(rate.row, prompt_tokens(usage)) != rate.row.bands[0]:
        raise UnpricedUsage("usage.iterations: which of the prompts are longer than the price's threshold is not known")
    return price(usage, rate)


def _rate(card: RateCard, reading: Reading, geo: str) -> tuple[RateKey, Rate]:
    models = {(row.provider, row.model) for row in card.rows}
    named = {pair for pair in models if pair[1] == reading.model}
    chosen = named or models
    if len(chosen) != 1:
        raise UnpricedUsage(f"rate card {card.name!r} has {len(chosen)} models that could price {reading.model!r}")
    provider, model = chosen.pop()
    key = RateKey(provider=provider, model=model, tier=reading.tier, speed=reading.speed, geo=geo)
    return key, find_rate(card, key)
