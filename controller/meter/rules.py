"""The one final statement about an accepted request: settled, provably free, or unknown. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controller.domain.money import UsdText, usd_to_text
from controller.domain.plan import REHEARSAL_PROVIDER
from controller.domain.rate_card import RateCard
from controller.domain.rating import RateKey, find_rate, find_row, price_ceiling
from controller.domain.usage import RequestState, Usage, ZeroBillProof
from controller.errors import UnpricedUsage
from controller.meter.dialects import Reader, Reading
from controller.meter.pricing import cost

BYTES_PER_TOKEN_LEAST: Final = 3  # text and code run at about 4; used only to bound what is in flight
OUTPUT_TOKENS_UNDECLARED: Final = 32_000  # assumed in flight when a request names no output limit of its own
RAW_USAGE_BYTES_MAX: Final = 64 * 2**10
NOTE_CHARS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class DocumentedRule:
    """A provider's own statement that a kind of answer is not billed."""

    name: str
    statuses: range
    source: str


# Only what a provider documents. Anthropic and OpenAI say nothing of failed requests in general, so theirs are unknown.
ZERO_BILL_RULES: Final[Mapping[str, tuple[DocumentedRule, ...]]] = {
    REHEARSAL_PROVIDER: (
        DocumentedRule(
            name="rehearsal: the scripted model does not bill errors",
            statuses=range(400, 600),
            source="controller/adapters/rehearsal, which is this provider and charges nothing for an error status",
        ),
    ),
    "gemini": (
        DocumentedRule(
            name="gemini: a request that fails with 400 is not charged",
            statuses=range(400, 401),
            source="the provider's billing page, section on failed requests",
        ),
        DocumentedRule(
            name="gemini: a request that fails with 500 is not charged",
            statuses=range(500, 501),
            source="the provider's billing page, section on failed requests",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class LaneTerms:
    """What the ledger's opening says about the lane of an attempt."""

    provider: str
    model: str
    observed_models: tuple[str, ...]
    rate_tier: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """How an exchange with the provider went, as witnessed at the socket."""

    connected: bool  # False when no connection was made, so that no byte can have left
    status: int | None = None
    ended_well: bool = False  # the response body arrived whole, as HTTP counts it
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """The decided final state with its grounds."""

    state: RequestState
    note: str = ""
    usage: Usage | None = None
    usd: UsdText | None = None
    proof: ZeroBillProof | None = None
    reading: Reading | None = None


def ending(
    exchange: Exchange,
    reader: Reader | None,
    lane: LaneTerms,
    card: RateCard,
    *,
    free: bool,
    asks_lifetime: bool = False,
) -> Ending:
    """Decide the final state.

    `free` marks token counting, which the provider documents as free of charge; `asks_lifetime` a request whose cache
    writes shall live for another time than the provider's default.
    """
    decided = _decided(exchange, reader, lane, card, free=free, asks_lifetime=asks_lifetime)
    return replace(decided, note=_plain(decided.note))


def _plain(note: str) -> str:
    """A note may quote what an answer holds: cut, and of characters that every store keeps."""
    text = note if len(note) <= NOTE_CHARS_MAX else note[:NOTE_CHARS_MAX] + "..."
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _decided(
    exchange: Exchange, reader: Reader | None, lane: LaneTerms, card: RateCard, *, free: bool, asks_lifetime: bool
) -> Ending:
    if not exchange.connected:
        note = f"no connection was made: {exchange.fault}"
        return Ending(RequestState.ZERO_BILL, note=note, usd="0", proof=ZeroBillProof.NEVER_SENT)
    if free:
        note = "token counting is documented as free"
        return Ending(RequestState.ZERO_BILL, note=note, usd="0", proof=ZeroBillProof.DOCUMENTED_RULE)
    if exchange.status is None:
        return Ending(RequestState.UNKNOWN, note=f"no answer: {exchange.fault}")
    if not 200 <= exchange.status < 300:
        return _failed(exchange, lane)
    if reader is None:
        return Ending(RequestState.UNKNOWN, note=exchange.fault or "the answer could not be read")
    try:
        reading = reader.reading()
    except UnpricedUsage as error:
        return Ending(RequestState.UNKNOWN, note=str(error), reading=reader.seen())
    except Exception as error:
        # A defect of ours must not leave a request without an ending.
        return Ending(RequestState.UNKNOWN, note=f"the meter failed to read the usage ({type(error).__name__})")
    if reading.assumes_lifetime and asks_lifetime:
        note = "the request asked for another lifetime of its cache writes, and the answer does not say which they got"
        return Ending(RequestState.UNKNOWN, note=note, usage=reading.usage, reading=reading)
    return _answered(exchange, reading, lane, card)


def _failed(exchange: Exchange, lane: LaneTerms) -> Ending:
    for rule in ZERO_BILL_RULES.get(lane.provider, ()):
        if exchange.status in rule.statuses:
            return Ending(RequestState.ZERO_BILL, note=rule.name, usd="0", proof=ZeroBillProof.DOCUMENTED_RULE)
    return Ending(
        RequestState.UNKNOWN, note=f"provider {lane.provider} documents no rule about billing status {exchange.status}"
    )


def _answered(exchange: Exchange, reading: Reading, lane: LaneTerms, card: RateCard) -> Ending:
    # A connection that breaks after the dialect's own end mark took nothing with it that could change the usage.
    is_whole = exchange.ended_well and not exchange.fault
    if reading.error or not reading.complete or not (is_whole or reading.final):
        why = reading.error or exchange.fault or "the answer ended before its usage was final"
        return Ending(RequestState.UNKNOWN, note=why, reading=reading)
    if reading.zero_bill_rule is not None:
        return Ending(
            RequestState.ZERO_BILL,
            note=reading.zero_bill_rule,
            usd="0",
            proof=ZeroBillProof.DOCUMENTED_RULE,
            reading=reading,
        )
    if reading.usage is None:
        return Ending(RequestState.UNKNOWN, note="the answer carried no usage", reading=reading)
    if reading.model not in lane.observed_models:
        allowed = ", ".join(lane.observed_models)
        note = f"observed model {reading.model!r} is outside the lane, which allows {allowed}"
        return Ending(RequestState.UNKNOWN, note=note, usage=reading.usage, reading=reading)
    if reading.tier != lane.rate_tier:
        note = f"served tier {reading.tier!r} is not the lane's {lane.rate_tier!r}"
        return Ending(RequestState.UNKNOWN, note=note, usage=reading.usage, reading=reading)
    key = RateKey(provider=lane.provider, model=lane.model, tier=lane.rate_tier, speed=reading.speed, geo=reading.geo)
    try:
        usd = usd_to_text(cost(reading, find_rate(card, key)))
    except UnpricedUsage as error:
        return Ending(RequestState.UNKNOWN, note=str(error), usage=reading.usage, reading=reading)
    note = "" if is_whole else f"after the end of the stream: {exchange.fault}"
    return Ending(RequestState.SETTLED, note=note, usage=reading.usage, usd=usd, reading=reading)


def estimate_usd(lane: LaneTerms, card: RateCard, *, body_bytes: int, output_tokens: int | None) -> UsdText:
    """An upper bound on what a request may cost while it is in flight.

    Raises UnpricedUsage when the lane has no row on the card: nothing is forwarded that could not be priced.
    """
    row = find_row(card, RateKey(provider=lane.provider, model=lane.model, tier=lane.rate_tier))
    return usd_to_text(
        price_ceiling(
            row,
            input_tokens=-(-body_bytes // BYTES_PER_TOKEN_LEAST),
            output_tokens=OUTPUT_TOKENS_UNDECLARED if output_tokens is None else output_tokens,
        )
    )


def raw_usage_text(raw: Mapping[str, Any]) -> str:
    """The provider's own usage object as compact JSON, kept as evidence; empty when it is absent or absurdly long."""
    text = json.dumps(dict(raw), sort_keys=True, separators=(",", ":")) if raw else ""
    return text if len(text) <= RAW_USAGE_BYTES_MAX else ""
