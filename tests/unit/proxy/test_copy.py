"""What is read of an answer while it passes, and what a fault of the reading is called."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from controller.meter import sse
from controller.meter.dialects import Reading
from controller.proxy import copy as proxy_copy
from controller.proxy.copy import Copy
from tests.world.answers import ANSWERS, Answer, anthropic, chat, framed, gemini, responses

EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}
JSON = {"Content-Type": "application/json"}


def read(dialect: str, headers: Mapping[str, str], raw: bytes, *, size: int = 2**18) -> Copy:
    copy = Copy(dialect, headers)
    for start in range(0, len(raw), size):
        copy.feed(raw[start : start + size])
    copy.end()
    return copy


def reading(copy: Copy) -> Reading:
    assert copy.reader is not None, copy.fault
    return copy.reader.reading()


def check(copy: Copy, answer: Answer) -> None:
    found = reading(copy)
    assert found.complete and found.usage == answer.usage and found.error is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress], ids=["plain", "gzip", "zlib"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("dialect", sorted(ANSWERS))
def test_every_dialect_in_every_framing_byte_by_byte(dialect: str, newline: bytes, pack: Any) -> None:
    answer = ANSWERS[dialect]()
    check(read(dialect, EVENTS, pack(answer.framed(newline)), size=1), answer)


@pytest.mark.parametrize("media_type", ["text/event-stream", "Text/Event-Stream;charset=UTF-8", " text/event-stream "])
def test_the_media_type_is_read_as_the_standard_says(media_type: str) -> None:
    answer = anthropic()
    check(read("anthropic", {"Content-Type": media_type}, answer.framed()), answer)


@pytest.mark.parametrize("media_type", ["text/html", "text/plain", "application/vnd.amazon.eventstream", "x" * 900])
def test_any_other_media_type_is_named(media_type: str) -> None:
    copy = read("anthropic", {"Content-Type": media_type}, anthropic().framed())
    assert copy.reader is None and repr(media_type[:60]) in copy.fault and len(copy.fault) < 200


@pytest.mark.parametrize(("headers", "raw"), [(EVENTS, b'{"type":"message"}'), (JSON, anthropic().framed())])
def test_a_body_that_is_not_what_its_media_type_says_is_not_complete(headers: Mapping[str, str], raw: bytes) -> None:
    copy = read("anthropic", headers, raw)
    assert copy.reader is None or not reading(copy).complete


def test_line_separators_marks_comments_and_strangers_are_no_obstacle() -> None:
    answer = anthropic(texts=("a\u2028b\u2029c\x85d", "\U0001f600"))
    raw = b"\xef\xbb\xbf: hello\n\nid: 7\nretry: 10\nunheard-of: x\ndata\n\nevent: ping\n\n" + answer.framed()
    check(read("anthropic", EVENTS, raw, size=1), answer)


def test_data_over_several_lines_are_one_event() -> None:
    payload = json.dumps(
        {"id": "m", "model": "x", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}, indent=1
    )
    raw = b"".join(b"data: " + line.encode() + b"\n" for line in payload.split("\n")) + b"\ndata: [DONE]\n\n"
    found = reading(read("openai_chat", EVENTS, raw))
    assert found.complete and found.usage is not None and found.usage.tokens == {"in": 7, "out": 0}


def test_running_totals_are_not_added() -> None:
    answer = chat(texts=("a", "b", "c"), counts=(1, 4, 9, 99))
    check(read("openai_chat", EVENTS, answer.framed()), answer)
    growing = gemini(texts=("a", "b"), counts=(10, 25, 40))
    check(read("gemini", EVENTS, growing.framed()), growing)


def test_a_gemini_stream_may_be_one_array() -> None:
    answer = gemini(texts=("a", "b"), counts=(10, 25, 40))
    raw = b"[" + b"\r\n,\r\n".join(json.dumps(payload).encode() for _, payload in answer.events) + b"\n]"
    check(read("gemini", JSON, raw, size=3), answer)
    check(read("gemini", JSON, gzip.compress(raw), size=3), answer)
    for end in range(len(raw)):
        assert read("gemini", JSON, raw[:end]).reader is None  # cut: it can't be read at all


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_an_array_is_no_answer_of_the_others(dialect: str) -> None:
    copy = read(dialect, JSON, b'[{"usage": {"input_tokens": 1}}]')
    assert copy.reader is None and "not a JSON object" in copy.fault


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"[]]", b'[{"usageMetadata": {}}, 1]'])
def test_an_array_of_anything_else_is_no_answer_of_gemini(raw: bytes) -> None:
    assert "can't be read" in read("gemini", JSON, raw).fault


def test_an_empty_array_carries_no_usage() -> None:
    assert not reading(read("gemini", JSON, b"[]")).complete


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
def test_the_responses_api_bills_every_terminal_event(status: str) -> None:
    answer = responses(status=status)
    check(read("openai_responses", EVENTS, answer.framed()), answer)


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_terminal_event_without_usage_is_not_complete(status: str) -> None:
    event = {"type": f"response.{status}", "response": {"id": "r", "model": "m", "usage": None}}
    assert not reading(read("openai_responses", EVENTS, framed([(f"response.{status}", event)]))).complete


@pytest.mark.parametrize("position", range(6))
def test_an_error_inside_a_stream_leaves_nothing_to_rely_on(position: int) -> None:
    events = list(anthropic().events)
    events.insert(position, ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "529"}}))
    found = reading(read("anthropic", EVENTS, framed(events)))
    assert not found.complete and found.error is not None
    chunks = list(chat(texts=("a", "b", "c", "d")).events)
    chunks.insert(position, ("", {"error": {"code": 503, "message": "overloaded"}}))
    found = reading(read("openai_chat", EVENTS, framed(chunks)))
    assert not found.complete and found.error is not None


@pytest.mark.parametrize(
    ("dialect", "usage"),
    [
        ("anthropic", {"usage": {"input_tokens": 3, "output_tokens": 1}}),
        ("openai_chat", {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 3}}),
    ],
)
def test_an_error_with_status_200_is_no_answer_even_with_usage(dialect: str, usage: dict[str, Any]) -> None:
    for payload in ({}, usage):
        error = {"error": {"type": "overloaded_error", "message": "x"}}
        found = reading(read(dialect, JSON, json.dumps(payload | error).encode()))
        assert not found.complete and found.error is not None


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_usage_after_the_end_is_not_believed(dialect: str) -> None:
    found = reading(read(dialect, EVENTS, ANSWERS[dialect]().framed() * 2))
    assert not found.complete and found.error is not None


def test_two_meanings_of_one_answer_are_refused() -> None:
    raw = b'{"id":"m","model":"x","usage":{"input_tokens":9,"output_tokens":9,"output_tokens":1}}'
    assert "twice" in read("anthropic", JSON, raw).fault
    stream = anthropic().framed().replace(b'"output_tokens": 400', b'"output_tokens": 400, "output_tokens": 4')
    assert "twice" in read("anthropic", EVENTS, stream).fault


def test_an_endless_answer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_copy, "ANSWER_BYTES_READ_MAX", 1_000)
    copy = read("anthropic", JSON, b" " * 1_001, size=100)
    assert copy.reader is None and "longer than 1000 bytes" in copy.fault


@pytest.mark.parametrize("line", [b"data: " + b"x" * 5_000, b"data\n" * 10_000, b"event" * 2_000, b":" * 5_000])
def test_an_endless_event_is_not_kept(line: bytes) -> None:
    parser = sse.SseParser(event_bytes_max=4_000)
    with pytest.raises(ValueError, match="4000"):
        parser.feed(line)


def test_a_bomb_ends_the_reading_and_takes_no_memory() -> None:
    bomb = gzip.compress(b"data: " + b"x" * 2**26)
    tracemalloc.start()
    try:
        copy = read("openai_chat", EVENTS, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copy.reader is None and "decompresses to more than" in copy.fault
    assert peak < 2**25  # half of what it would be


def test_a_stream_of_any_length_takes_no_memory() -> None:
    copy = Copy("openai_chat", EVENTS)
    chunk = framed([("", {"id": "m", "model": "x", "choices": [{"delta": {"content": "hello"}}]})])
    copy.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(5_000):
            copy.feed(chunk)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 5_000


@pytest.mark.parametrize("step", ["event", "body"])
def test_a_defect_of_a_reader_ends_the_reading_only(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def broken(*_: object) -> None:
        raise KeyError("usage")

    copy = Copy("anthropic", EVENTS if step == "event" else JSON)
    monkeypatch.setattr(type(copy.reader), step, broken)
    copy.feed(b"data: {}\n\n" if step == "event" else b"{}")
    copy.end()
    assert copy.reader is None and copy.fault == "the meter failed to read the answer (KeyError)"
