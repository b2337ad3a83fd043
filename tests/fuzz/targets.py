"""What must hold for any bytes. A target raises when something else happens than the errors that it names."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import anthropic._streaming

from controller.domain.instant import InstantMs
from controller.domain.json_files import parse_record
from controller.domain.rate_card import RateCard
from controller.domain.usage import Dialect, RequestState
from controller.errors import InvalidInput
from controller.meter.admission import ROUTES, Refused, admit, find_route, refusal_body
from controller.meter.rules import Ending, Exchange, LaneTerms, ending, raw_usage_text
from controller.meter.sse import SseParser
from controller.ports.ledger import RequestEnd
from controller.proxy.copy import Copy
from tests.world.processes import CARD, MODEL

DIALECTS: Final[tuple[Dialect, ...]] = ("anthropic", "openai_chat", "openai_responses", "gemini")
HEADERS: Final[tuple[Mapping[str, str], ...]] = (
    {"Content-Type": "text/event-stream"},
    {"Content-Type": "application/json"},
    {"Content-Type": "text/event-stream", "Content-Encoding": "deflate"},
    {},
)
LANE: Final = LaneTerms(provider="rehearsal", model=MODEL, observed_models=(MODEL,), rate_tier="standard")
WELL: Final = Exchange(connected=True, status=200, ended_well=True)
BROKEN: Final = Exchange(connected=True, status=200, fault="the provider's answer broke off")
NOTE_CHARS_MAX: Final = 1_100
DEFECT: Final = "the meter failed"
KNOBS: Final = 2  # bytes at the start of an input that choose a case instead of being data


def answer(data: bytes) -> None:
    """An answer has one ending, which doesn't depend on its cuts, and which a part of it never undercuts."""
    choice, size = _knobs(data)
    dialect, headers = DIALECTS[choice % 4], HEADERS[choice // 4 % 4]
    wire = gzip.compress(data[KNOBS:], 1, mtime=0) if choice & 64 else data[KNOBS:]
    whole = _read(dialect, headers, [wire], WELL)
    _check_ending(whole)
    pieces = [wire[start : start + size + 1] for start in range(0, len(wire), size + 1)]
    cut = _read(dialect, headers, pieces, WELL)
    assert (cut.state, cut.usd, cut.usage) == (whole.state, whole.usd, whole.usage), (whole, cut)
    part = _read(dialect, headers, pieces[: len(pieces) // 2], BROKEN)
    _check_ending(part)
    if RequestState.SETTLED is part.state is whole.state:
        assert part.usage == whole.usage, (part, whole)


def _read(dialect: str, headers: Mapping[str, str], chunks: list[bytes], exchange: Exchange) -> Ending:
    copy = Copy(dialect, headers)
    for chunk in chunks:
        copy.feed(chunk)
    if exchange.ended_well:
        copy.end()
        exchange = Exchange(True, exchange.status, True, copy.fault)
    assert DEFECT not in copy.fault, copy.fault
    return ending(exchange, copy.reader, LANE, CARD, free=False)


def _check_ending(decided: Ending) -> None:
    assert DEFECT not in decided.note, decided.note
    assert len(decided.note) < NOTE_CHARS_MAX
    assert (decided.usd is None) == (decided.state is RequestState.UNKNOWN)
    reading = decided.reading
    raw = raw_usage_text(reading.raw) if reading else ""
    if raw:
        json.loads(raw, parse_constant=_no_constant)
    end = RequestEnd(
        state=decided.state,
        ended_at=InstantMs(0),
        provider_message_id=reading.message_id if reading else None,
        observed_model=reading.model if reading else None,
        served_tier=reading.tier if reading else None,
        served_speed=reading.speed if reading else None,
        served_geo=reading.geo if reading else None,
        usage=decided.usage,
        usd=decided.usd,
        zero_bill_proof=decided.proof,
        raw_usage_json=raw,
        note=decided.note,
    )
    texts = [value for value in dict(end).values() if isinstance(value, str)]
    assert all("\0" not in text and text.encode() == text.encode("utf-8", "replace") for text in texts)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} in a record")


def events(data: bytes) -> None:
    """The official client sees the same events, and no cut changes them."""
    _, size = _knobs(data)
    wire = data[KNOBS:]
    pieces = [wire[start : start + size + 1] for start in range(0, len(wire), size + 1)]
    parser = SseParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    assert found == SseParser().feed(wire)
    try:
        text = wire.decode("utf-8")
    except UnicodeDecodeError:
        return
    if "\ufeff" not in text:
        seen = anthropic._streaming.SSEDecoder().iter_bytes(iter([wire]))
        expected = [(event.event or "", event.data.encode()) for event in seen if event.data]
        assert [tuple(event) for event in found if event.data] == expected


def admission(data: bytes) -> None:
    """A body is refused by name or forwarded as it came, but for changes that are named."""
    choice, _ = _knobs(data)
    route = ROUTES[choice % 16 % len(ROUTES)]
    raw = data[KNOBS:]
    try:
        found = find_route(route.method, route.path.replace("{model}", MODEL), "")
        admitted = admit(found, raw, model=MODEL, dialect=DIALECTS[choice // 16 % 4])
    except Refused as refused:
        assert refused.status in (400, 401, 403, 404)
        for dialect in DIALECTS:
            json.dumps(refusal_body(dialect, refused)).encode()
        return
    assert admitted.output_tokens is None or admitted.output_tokens >= 0
    before, after = json.loads(raw), json.loads(admitted.body)
    if admitted.changes:
        assert admitted.changes == ("stream_options.include_usage",)
        assert after.pop("stream_options")["include_usage"] is True
        before.pop("stream_options", None)
        assert after == before
    else:
        assert admitted.body == raw


def routes(data: bytes) -> None:
    """A path is one of the allowed ones, or 404, or 400 for its query."""
    method, _, rest = data.decode("latin-1").partition(" ")
    path, _, query = rest.partition("?")
    try:
        find_route(method, path, query)
    except Refused as refused:
        assert refused.status in (400, 404)


def card(data: bytes) -> None:
    """A rate card is refused with the paths of its faults, or written again as the same card."""
    try:
        read = parse_record(data, RateCard, "card.json")
    except InvalidInput as error:
        str(error).encode()
        return
    assert parse_record(read.model_dump_json().encode(), RateCard, "card.json") == read


def _knobs(data: bytes) -> tuple[int, int]:
    return (data[0], data[1]) if len(data) >= KNOBS else (0, 0)


TARGETS: Final[tuple[Callable[[bytes], None], ...]] = (answer, events, admission, routes, card)


def run(data: bytes) -> None:
    """One input: its first byte names the target."""
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


def inputs(target: Callable[[bytes], None], *datas: bytes) -> Iterator[bytes]:
    """What `run` takes for these inputs of a target."""
    return (bytes([TARGETS.index(target)]) + data for data in datas)
