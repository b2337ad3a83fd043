"""However the network cuts a stream, the same events come out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

import anthropic._streaming
import openai._streaming
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.meter.dialects import READERS
from controller.meter.sse import SseEvent, SseParser

TEXT = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=12)
FIELDS = st.one_of(
    st.builds(lambda text: f"data: {text}", TEXT),
    st.builds(lambda text: f"data:{text}", TEXT),
    st.builds(lambda text: f"event: {text}", TEXT),
    st.builds(lambda text: f": {text}", TEXT),
    st.builds(lambda text: f"id: {text}", TEXT),
    st.just("data"),
    st.just(""),
)


def parsed(chunks: list[bytes]) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def reference(lines: list[str]) -> list[SseEvent]:
    """The rules of the standard, line by line."""
    events: list[SseEvent] = []
    data: list[str] = []
    name = ""
    for line in lines:
        if line == "":
            if data:
                events.append(SseEvent(name, "\n".join(data).encode()))
            name, data = "", []
        elif line.startswith("data"):
            value = line.partition(":")[2]
            data.append(value.removeprefix(" "))
        elif line.startswith("event"):
            name = line.partition(":")[2].removeprefix(" ")
    return events


@given(lines=st.lists(FIELDS, max_size=20), ends=st.data())
def test_any_split_and_any_line_end_give_the_standards_events(lines: list[str], ends: st.DataObject) -> None:
    raw = b"".join(line.encode() + ends.draw(st.sampled_from([b"\n", b"\r\n"])) for line in lines)
    cuts = sorted(ends.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert parsed(chunks) == reference(lines)


@given(lines=st.lists(FIELDS, max_size=20), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_a_lone_carriage_return_ends_a_line(lines: list[str], cuts: list[int]) -> None:
    raw = b"".join(line.encode() + b"\r" for line in lines)
    places = sorted(min(cut, len(raw)) for cut in cuts)
    chunks = [raw[start:end] for start, end in zip([0, *places], [*places, len(raw)], strict=True)]
    assert parsed(chunks) == reference(lines)


class Decoder(Protocol):
    """What both official SDKs read their streams with."""

    def iter_bytes(self, iterator: Iterator[bytes]) -> Iterator[Any]: ...


ANY_LINE = st.one_of(FIELDS, st.text(st.characters(exclude_characters="\r\n\ufeff", codec="utf-8"), max_size=8))


@pytest.mark.parametrize("sdk", [anthropic._streaming.SSEDecoder, openai._streaming.SSEDecoder])
@given(lines=st.lists(ANY_LINE, max_size=20), data=st.data())
def test_the_official_clients_see_the_same_events(sdk: type[Decoder], lines: list[str], data: st.DataObject) -> None:
    raw = b"".join(line.encode() + data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])) for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    seen = [(event.event or "", event.data.encode()) for event in sdk().iter_bytes(iter(chunks))]
    # They also hand on an event that has a name and no data, in which the standard sees none.
    assert [event for event in seen if event[1]] == [tuple(event) for event in parsed(chunks) if event.data]


def test_a_line_separator_inside_a_string_is_data() -> None:
    payload = json.dumps({"text": "a\u2028b\u2029c\x85d"}, ensure_ascii=False).encode()
    raw = b"\xef\xbb\xbfdata: " + payload + b"\n\n"
    assert parsed([raw[i : i + 1] for i in range(len(raw))]) == [SseEvent("", payload)]


def test_an_endless_event_is_refused() -> None:
    parser = SseParser(event_bytes_max=100)
    assert parser.feed(b"data: " + b"x" * 90) == []
    with pytest.raises(ValueError, match="100"):
        parser.feed(b"x" * 90)


@given(cuts=st.lists(st.integers(0, 600), max_size=10), newline=st.sampled_from([b"\n", b"\r\n"]))
def test_usage_does_not_depend_on_the_cuts(cuts: list[int], newline: bytes) -> None:
    lines = [
        b"event: message_start",
        b'data: {"message":{"id":"m","model":"x","usage":{"input_tokens":25,"output_tokens":3}}}',
        b"",
        b"event: ping",
        b"data: {}",
        b"",
        b"event: message_delta",
        b'data: {"usage":{"output_tokens":120}}',
        b"",
        b"event: message_delta",
        b'data: {"usage":{"output_tokens":510,"input_tokens":null}}',
        b"",
        b"event: message_stop",
        b"data: {}",
        b"",
    ]
    raw = newline.join(lines) + newline
    places = sorted(min(cut, len(raw)) for cut in cuts)
    chunks = [raw[start:end] for start, end in zip([0, *places], [*places, len(raw)], strict=True)]
    reader = READERS["anthropic"]()
    for event in parsed(chunks):
        reader.event(*event)
    reading = reader.reading()
    assert reading.complete and reading.usage is not None
    assert reading.usage.tokens == {"in": 25, "out": 510}
