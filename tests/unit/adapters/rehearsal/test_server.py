"""Each dialect, streamed and not, read back with readers of our own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.unit.adapters.rehearsal.reading import (
    KEY,
    Answer,
    Json,
    client,
    ending_in,
    read_anthropic,
    read_chat,
    read_responses,
)

FUNCTION = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
PADDING = "Background. " * 600  # long enough for the providers' caches


def anthropic_body(turns: int) -> Json:
    messages: list[Json] = [{"role": "user", "content": PADDING}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": {"command": "ls"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Look."}, call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": "a.py"}
        messages.append({"role": "user", "content": [result]})
    schema = {
        "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
        "required": ["command", "description"],
    }
    tools = [{"name": "Read", "input_schema": {"properties": {"path": {}}}}, {"name": "Bash", "input_schema": schema}]
    return {"model": "rehearsal-1", "max_tokens": 99, "messages": messages, "tools": tools}


def chat_body(turns: int) -> Json:
    messages: list[Json] = [{"role": "system", "content": PADDING}, {"role": "user", "content": "Fix it."}]
    for turn in range(turns):
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": "a.py"})
    return {
        "model": "rehearsal-1",
        "messages": messages,
        "tools": [{"type": "function", "function": FUNCTION}],
        "stream_options": {"include_usage": True},
    }


def responses_body(turns: int) -> Json:
    items: list[Json] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": PADDING}]}]
    for turn in range(turns):
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]})
        items.append({"type": "function_call", "call_id": f"call_{turn}", "name": "bash", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"call_{turn}", "output": "a.py"})
    return {"model": "rehearsal-1", "input": items, "tools": [{"type": "function", **FUNCTION}]}


def whole_anthropic(body: Json) -> Answer:
    answer = Answer(reply_id=body["id"], usage=body["usage"], stop=body["stop_reason"], ended=True)
    for part in body["content"]:
        answer.text += part.get("text", "")
        if part["type"] == "tool_use":
            answer.tool, answer.call_id = part["name"], part["id"]
            answer.arguments = json.dumps(part["input"])
    return answer


def whole_chat(body: Json) -> Answer:
    (choice,) = body["choices"]
    answer = Answer(reply_id=body["id"], usage=body["usage"], stop=choice["finish_reason"], ended=True)
    answer.text = choice["message"]["content"] or ""
    for call in choice["message"].get("tool_calls", []):
        answer.tool, answer.arguments = call["function"]["name"], call["function"]["arguments"]
        answer.call_id = call["id"]
    return answer


def whole_responses(body: Json) -> Answer:
    answer = Answer(reply_id=body["id"], usage=body["usage"], stop=body["status"], ended=True)
    for item in body["output"]:
        if item["type"] == "message":
            answer.text = "".join(part["text"] for part in item["content"])
        else:
            answer.tool, answer.arguments, answer.call_id = item["name"], item["arguments"], item["call_id"]
    return answer


Case = tuple[str, Callable[[int], Json], Callable[[bytes], Answer], Callable[[Json], Answer]]
CASES: list[Case] = [
    ("/v1/messages", anthropic_body, read_anthropic, whole_anthropic),
    ("/v1/chat/completions", chat_body, read_chat, whole_chat),
    ("/v1/responses", responses_body, read_responses, whole_responses),
]
dialects = pytest.mark.parametrize("case", CASES, ids=["anthropic", "openai_chat", "openai_responses"])


async def ask(case: Case, turns: int, *, stream: bool, http: Any) -> Answer:
    path, body, read, whole = case
    response = await http.post(path, json={**body(turns), "stream": stream}, headers=KEY)
    data = await response.read()
    assert response.status == 200, data
    assert response.content_type == ("text/event-stream" if stream else "application/json")
    return read(data) if stream else whole(json.loads(data))


@dialects
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_script_is_played_turn_by_turn(case: Case, stream: bool) -> None:
    async with client() as http:
        first, second, last, later = [await ask(case, turns, stream=stream, http=http) for turns in (0, 1, 2, 3)]
    assert first.text == "First I read the file, \u2028 – all of it."
    assert (first.tool or "").lower() == "bash"
    assert json.loads(first.arguments)["command"] == "cat 'a b.py'"
    assert (second.text, json.loads(second.arguments)["command"]) == ("", "sed -i 's/x/y/' a.py")
    assert (last.text, last.tool) == ("Done.", None)
    assert (later.text, later.tool) == ("Done.", None)
    assert all(answer.ended for answer in (first, second, last))
    assert first.stop in ("tool_use", "tool_calls", "completed")
    assert last.stop in ("end_turn", "stop", "completed")


@dialects
async def test_stream_and_whole_reply_agree(case: Case) -> None:
    for turns in (0, 1, 2):
        async with client() as http:
            streamed = await ask(case, turns, stream=True, http=http)
        async with client() as http:
            whole = await ask(case, turns, stream=False, http=http)
        assert json.loads(streamed.arguments or "{}") == json.loads(whole.arguments or "{}")
        streamed.arguments = whole.arguments = ""
        assert streamed == whole


@dialects
async def test_a_request_sent_again_gets_the_same_answer_under_another_id(case: Case) -> None:
    async with client() as http:
        first, again = [await ask(case, 0, stream=True, http=http) for _ in range(2)]
    assert first.reply_id != again.reply_id
    assert first.call_id == again.call_id
    again.reply_id = first.reply_id
    assert first == again


def normalised(usage: Json) -> tuple[int, int, int, int]:
    """(plain, read, written, out) by each provider's own documentation."""
    if "cache_read_input_tokens" in usage:
        assert usage["cache_creation"]["ephemeral_5m_input_tokens"] == usage["cache_creation_input_tokens"]
        read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        return usage["input_tokens"], read, written, usage["output_tokens"]
    total, out, details = (
        (usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"])
        if "prompt_tokens" in usage
        else (usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"])
    )
    assert usage["total_tokens"] == total + out
    read, written = details["cached_tokens"], details["cache_write_tokens"]
    return total - read - written, read, written, out


@dialects
async def test_usage_grows_with_the_conversation_and_moves_into_the_cache(case: Case) -> None:
    async with client() as http:
        uses = [normalised((await ask(case, turns, stream=True, http=http)).usage) for turns in (0, 1, 2)]
    assert uses[0][1] == 0 and uses[0][2] > 1000  # the first turn writes
    for before, after in itertools.pairwise(uses):
        assert after[1] == before[1] + before[2]  # what was known is read, exactly
        assert sum(after[:3]) > sum(before[:3])
    assert all(0 < plain <= 128 for plain, _, _, _ in uses)
    assert all(out > 0 for _, _, _, out in uses)


async def test_a_chat_stream_has_usage_only_when_it_was_asked_for() -> None:
    async with client() as http:
        body = {name: value for name, value in chat_body(0).items() if name != "stream_options"}
        response = await http.post("/v1/chat/completions", json={**body, "stream": True}, headers=KEY)
        answer = read_chat(await response.read())
    assert answer.usage == {} and answer.ended


ERROR_TYPES = {
    "/v1/messages": {529: "overloaded_error", 500: "api_error", 429: "rate_limit_error"},
    "/v1/chat/completions": {529: "server_error", 500: "server_error", 429: "rate_limit_error"},
    "/v1/responses": {529: "server_error", 500: "server_error", 429: "rate_limit_error"},
}


@dialects
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_a_failure_step_answers_with_the_providers_error(case: Case, status: int) -> None:
    path, body, _, _ = case
    async with client(ending_in(f'{{"status": {status}}}')) as http:
        for stream in (True, False):
            response = await http.post(path, json={**body(0), "stream": stream}, headers=KEY)
            error = (await response.json())["error"]
            assert response.status == status
            assert error["type"] == ERROR_TYPES[path][status]
            assert error["message"]


@dialects
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_truncated_step_breaks_the_connection_in_the_middle(case: Case, stream: bool) -> None:
    path, body, read, _ = case
    async with client(ending_in('{"say": "This will not arrive whole, as you see here.", "truncate": true}')) as http:
        response = await http.post(path, json={**body(0), "stream": stream}, headers=KEY)
        assert response.status == 200
        received = b""
        with pytest.raises(aiohttp.ClientPayloadError):
            while chunk := await response.content.readany():
                received += chunk
    assert received
    if stream:
        assert not read(received).ended


async def test_a_step_waits_on_the_given_pause() -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async with client(ending_in('{"say": "Done.", "sleep_ms": 1500}'), pause=pause) as http:
        await ask(CASES[0], 0, stream=False, http=http)
    assert waits == [1.5]


@dialects
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer sk-something"}, 401),
        ({"Authorization": "Bearer rehearsal:calc:codex:0:1"}, 401),
        ({"Authorization": "Basic rehearsal:calc:codex:1:1"}, 401),
        ({"x-api-key": "rehearsal:other:codex:1:1"}, 400),
    ],
)
async def test_a_key_that_names_no_known_attempt_is_refused(case: Case, headers: Json, status: int) -> None:
    path, body, _, _ = case
    async with client() as http:
        response = await http.post(path, json=body(0), headers=headers)
        assert response.status == status
        assert (await response.json())["error"]["message"]


@dialects
@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"model": 1}', b'{"model": "m", "messages": "x", "input": 3}', b'{"messages": [], "input": []}'],
)
async def test_a_malformed_body_is_refused_as_the_provider_would(case: Case, body: bytes) -> None:
    async with client() as http:
        response = await http.post(case[0], data=body, headers=KEY)
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_counting_tokens_gives_the_size_of_the_prompt() -> None:
    async with client() as http:
        response = await http.post("/v1/messages/count_tokens", json=anthropic_body(0), headers=KEY)
        counted = (await response.json())["input_tokens"]
        answer = await ask(CASES[0], 0, stream=False, http=http)
    assert counted == sum(normalised(answer.usage)[:3])


async def test_the_model_list_names_the_rehearsal_model() -> None:
    async with client() as http:
        response = await http.get("/v1/models", headers=KEY)
        assert [entry["id"] for entry in (await response.json())["data"]] == ["rehearsal-1"]
