"""What each way of ending an answer is decided to be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.domain.usage import RequestState, Usage, ZeroBillProof
from controller.errors import UnpricedUsage
from controller.meter.dialects import READERS, Reader, Reading
from controller.meter.rules import Ending, Exchange, LaneTerms, ending
from tests.world.answers import ANSWERS, Answer, anthropic
from tests.world.processes import CALL_USD, CARD, MODEL

LANE = LaneTerms(provider="rehearsal", model=MODEL, observed_models=(MODEL,), rate_tier="standard")
WELL = Exchange(connected=True, status=200, ended_well=True)
BROKEN = Exchange(connected=True, status=200, fault="the provider's answer broke off (ClientPayloadError)")


def told(answer: Answer, count: int) -> Reader:
    reader = READERS[answer.dialect]()
    for name, payload in answer.events[:count]:
        reader.event(name, (payload if isinstance(payload, str) else json.dumps(payload)).encode())
    return reader


def decide(exchange: Exchange, reader: Reader | None) -> Ending:
    return ending(exchange, reader, LANE, CARD, free=False)


@pytest.mark.parametrize("dialect", sorted(ANSWERS))
def test_only_a_whole_stream_is_settled_when_http_calls_it_whole(dialect: str) -> None:
    answer = ANSWERS[dialect](texts=("a", "b"))
    for count in range(len(answer.events) + 1):
        decided = decide(WELL, told(answer, count))
        if count < answer.end:
            assert decided.state is RequestState.UNKNOWN and decided.usd is None, count
        else:
            assert (decided.state, decided.usage) == (RequestState.SETTLED, answer.usage), count


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_a_break_after_the_end_mark_takes_nothing_away(dialect: str) -> None:
    answer = ANSWERS[dialect]()
    whole = len(answer.events)
    decided = decide(BROKEN, told(answer, whole))
    assert (decided.state, decided.usd) == (RequestState.SETTLED, CALL_USD)
    assert decided.note == "after the end of the stream: the provider's answer broke off (ClientPayloadError)"
    assert decide(BROKEN, told(answer, whole - 1)).state is RequestState.UNKNOWN


def test_a_broken_gemini_stream_is_unknown_since_it_has_no_end_mark() -> None:
    answer = ANSWERS["gemini"]()
    decided = decide(BROKEN, told(answer, len(answer.events)))
    assert decided.state is RequestState.UNKNOWN and "broke off" in decided.note


def test_an_error_wins_over_the_end_mark() -> None:
    reader = told(anthropic(), 99)
    reader.event("error", b'{"type": "error", "error": {"type": "overloaded_error"}}')
    for exchange in (WELL, BROKEN):
        decided = decide(exchange, reader)
        assert decided.state is RequestState.UNKNOWN and "error event" in decided.note


def read(dialect: str, *events: tuple[str, Any]) -> Reading:
    return told(Answer(dialect, events, Usage(tokens={}), 0), len(events)).reading()


BEGUN = {"id": "m", "model": MODEL, "usage": {"input_tokens": 9, "output_tokens": 1}}
START = ("message_start", {"message": BEGUN})
STOP: tuple[str, Any] = ("message_stop", {})


@pytest.mark.parametrize("delta", [None, {}, {"usage": None}, {"usage": {}}, {"usage": {"output_tokens": None}}])
def test_a_message_without_its_final_count_is_not_complete(delta: dict[str, Any] | None) -> None:
    between = [] if delta is None else [("message_delta", delta)]
    assert not read("anthropic", START, *between, STOP).complete


def test_two_messages_in_one_stream_are_not_one() -> None:
    found = read("anthropic", START, START, ("message_delta", {"usage": {"output_tokens": 4}}), STOP)
    assert not found.complete and found.error == "the stream holds two messages"


def test_usage_before_the_terminal_event_is_no_final_usage() -> None:
    early = BEGUN | {"status": "in_progress"}
    for usage in ({}, {"usage": None}):
        last = {"id": "m", "model": MODEL, "status": "completed"} | usage
        events = [("response.created", {"response": early}), ("response.completed", {"response": last})]
        assert not read("openai_responses", *events).complete


def test_an_event_called_error_is_one_whatever_it_says() -> None:
    chunk = {"id": "m", "model": MODEL, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    found = read("openai_chat", ("", chunk), ("error", {"message": "overloaded"}), ("", "[DONE]"))
    assert not found.complete and found.error is not None


@pytest.mark.parametrize(
    ("exchange", "state", "proof"),
    [
        (Exchange(connected=False, fault="ClientConnectorError"), RequestState.ZERO_BILL, ZeroBillProof.NEVER_SENT),
        (Exchange(connected=True, fault="the provider's answer broke off"), RequestState.UNKNOWN, None),
        (Exchange(connected=True, status=200, ended_well=True), RequestState.UNKNOWN, None),
        (Exchange(connected=True, status=302, ended_well=True), RequestState.UNKNOWN, None),
        (Exchange(connected=True, status=529, ended_well=True), RequestState.ZERO_BILL, ZeroBillProof.DOCUMENTED_RULE),
    ],
)
def test_endings_without_a_reading(exchange: Exchange, state: RequestState, proof: ZeroBillProof | None) -> None:
    decided = decide(exchange, None)
    assert (decided.state, decided.proof) == (state, proof) and decided.note


class Scripted:
    """A reader whose answer, or failure, is given."""

    def __init__(self, outcome: Reading | Exception) -> None:
        self._outcome = outcome

    def body(self, payload: Any) -> None: ...

    def event(self, name: str, data: bytes) -> None: ...

    def seen(self) -> Reading:
        return Reading(complete=False)

    def reading(self) -> Reading:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def test_a_defect_of_a_reader_is_unknown_and_not_a_request_without_ending() -> None:
    decided = decide(WELL, Scripted(KeyError("secret of the answer")))
    assert decided.state is RequestState.UNKNOWN
    assert decided.note == "the meter failed to read the usage (KeyError)"


def test_a_note_can_be_kept_by_every_store() -> None:
    hostile = "usage.\ud800\0\n" + "x" * 10**6
    for outcome in (UnpricedUsage(hostile), Reading(complete=True, error=hostile)):
        note = decide(WELL, Scripted(outcome)).note
        assert note.startswith("usage.\\ud800\\x00\\n") and len(note) < 1_100
        note.encode()


@pytest.mark.parametrize("value", ["\ud800", "a\0b", "a\nb", "", "x" * 513, 7, None, ["msg_1"]])
def test_a_name_that_no_store_can_keep_is_none(value: object) -> None:
    reader = READERS["anthropic"]()
    reader.body({"id": value, "model": value, "usage": {"input_tokens": 1, "output_tokens": 1}})
    assert (reader.reading().message_id, reader.reading().model) == (None, None)
    assert decide(WELL, reader).state is RequestState.UNKNOWN
