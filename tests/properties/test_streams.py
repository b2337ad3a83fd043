"""However a stream is framed, packed and cut, it is read the same; and a part of it never settles for less."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.domain.usage import RequestState
from controller.meter.dialects import READERS
from controller.meter.rules import Ending, Exchange, LaneTerms, ending
from controller.proxy.copy import Copy
from tests.world.answers import ANSWERS, Answer, framed
from tests.world.processes import CARD, MODEL

LANE: Final = LaneTerms(provider="rehearsal", model=MODEL, observed_models=(MODEL,), rate_tier="standard")
EVENTS: Final = {"Content-Type": "text/event-stream"}
HEADERS: Final = [EVENTS, {"Content-Type": "application/json"}, {}, EVENTS | {"Content-Encoding": "deflate"}]
WELL: Final = Exchange(connected=True, status=200, ended_well=True)
BROKEN: Final = Exchange(connected=True, status=200, fault="the provider's answer broke off")
NOISE: Final = (b": a comment", b":", b"id: 4", b"retry: 100", b"unheard-of: data: 1", b"\xff\xfe")


def decide(exchange: Exchange, copy: Copy) -> Ending:
    """As the relay does."""
    fault = exchange.fault or copy.fault
    whole = Exchange(exchange.connected, exchange.status, exchange.ended_well, fault)
    return ending(whole, copy.reader, LANE, CARD, free=False)


def fed(dialect: str, headers: Mapping[str, str], chunks: Iterable[bytes]) -> Copy:
    copy = Copy(dialect, headers)
    for chunk in chunks:
        copy.feed(chunk)
    return copy


@st.composite
def conversations(draw: st.DrawFn) -> Answer:
    """Any text, and counts that grow; where a dialect reports as it goes, the last counts."""
    dialect = draw(st.sampled_from(sorted(ANSWERS)))
    texts = draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=5))
    steps = draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
    return ANSWERS[dialect](texts=texts, counts=[sum(steps[: end + 1]) for end in range(len(steps))])


@st.composite
def wires(draw: st.DrawFn, answer: Answer) -> bytes:
    """The stream with any framing, with lines that mean nothing, and compressed in one of the ways of servers."""
    newline = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    events = []
    for event in answer.events:
        noise = draw(st.lists(st.sampled_from(NOISE), max_size=2))
        events.append(b"".join(line + newline for line in noise) + framed([event], newline))
    events[0] = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + events[0]
    packing = draw(st.sampled_from(["plain", "gzip", "zlib", "flushed", "members"]))
    if packing == "plain":
        return b"".join(events)
    if packing == "members":
        return b"".join(gzip.compress(event) for event in events)
    if packing in ("gzip", "zlib"):
        pack: Callable[[bytes], bytes] = gzip.compress if packing == "gzip" else zlib.compress
        return pack(b"".join(events))
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    parts = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
    return b"".join([*parts, packer.flush()])


@st.composite
def chunked(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    """The bytes as any network may cut them."""
    places = sorted({0, len(raw), *draw(st.lists(st.integers(0, len(raw)), max_size=12))})
    return [raw[start:end] for start, end in pairwise(places)]


@given(data=st.data(), answer=conversations())
def test_a_stream_is_read_the_same_however_it_comes(data: st.DataObject, answer: Answer) -> None:
    copy = fed(answer.dialect, EVENTS, data.draw(wires(answer).flatmap(chunked)))
    copy.end()
    decided = decide(WELL, copy)
    assert (decided.state, decided.usage) == (RequestState.SETTLED, answer.usage), decided.note
    assert decided.reading is not None and (decided.reading.message_id or "").startswith("msg_")


@given(data=st.data(), answer=conversations())
def test_a_part_of_a_stream_never_settles_for_less(data: st.DataObject, answer: Answer) -> None:
    wire = data.draw(wires(answer))
    chunks = data.draw(chunked(wire[: data.draw(st.integers(0, len(wire)))]))
    broken = decide(BROKEN, fed(answer.dialect, EVENTS, chunks))
    # A connection that is closed to mark the end of an answer looks the same when it is lost.
    closed = fed(answer.dialect, EVENTS, chunks)
    closed.end()
    for decided in (broken, decide(WELL, closed)):
        assert decided.state is RequestState.UNKNOWN or decided.usage == answer.usage
        assert (decided.usd is None) == (decided.state is RequestState.UNKNOWN)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("dialect", sorted(ANSWERS))
def test_a_stream_cut_at_every_byte_never_settles_for_less(dialect: str, pack: Callable[[bytes], bytes]) -> None:
    answer = ANSWERS[dialect](texts=("Hi", "\u2028"), counts=(1, 40, 400))
    wire = pack(answer.framed(b"\r\n"))
    copy = Copy(dialect, EVENTS)
    states = []
    for position in range(len(wire)):
        copy.feed(wire[position : position + 1])
        for exchange in (BROKEN, WELL):
            decided = decide(exchange, copy)
            assert decided.state is RequestState.UNKNOWN or decided.usage == answer.usage, position
        states.append(decided.state)
    assert states[-1] is RequestState.SETTLED and states[0] is RequestState.UNKNOWN


@pytest.mark.parametrize("dialect", sorted(READERS))
@settings(max_examples=60)
@given(raw=st.binary(max_size=300), headers=st.sampled_from(HEADERS), size=st.integers(1, 400))
def test_any_bytes_have_an_ending(dialect: str, raw: bytes, headers: dict[str, str], size: int) -> None:
    copy = fed(dialect, headers, (raw[start : start + size] for start in range(0, len(raw), size)))
    copy.end()
    decided = decide(WELL, copy)
    assert decided.state is RequestState.UNKNOWN
    assert "the meter failed" not in decided.note


@given(data=st.data(), answer=conversations())
def test_a_damaged_stream_has_an_ending(data: st.DataObject, answer: Answer) -> None:
    wire = bytearray(data.draw(wires(answer)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(wire)))
        wire[start : start + data.draw(st.integers(0, 30))] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b'"', b"}", b"{}", b"-1", b"1e5", b"[]", b"null", b"\n"]))
        )
    copy = fed(answer.dialect, data.draw(st.sampled_from(HEADERS)), data.draw(chunked(bytes(wire))))
    copy.end()
    decided = decide(WELL, copy)
    assert "the meter failed" not in decided.note
    assert (decided.usd is None) == (decided.state is RequestState.UNKNOWN)
