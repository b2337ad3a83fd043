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
    read_gemini,
    read_responses,
    whole_gemini,
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


def gemini_body(turns: int) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": PADDING}]}]
    for turn in range(turns):
        call = {"functionCall": {"id": f"call_{turn}", "name": "bash", "args": {}}}
        contents.append({"role": "model", "parts": [{"text": "Look."}, call]})
        result = {"functionResponse": {"id": f"call_{turn}", "name": "bash", "response": {"output": "a.py"}}}
        contents.append({"role": "user", "parts": [result]})
    schema = {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}, "required": ["command"]}
    declared = {"name": "bash", "description": "Run it.", "parameters": schema}
    return {"contents": contents, "tools": [{"functionDeclarations": [declared]}]}


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


GEMINI = "/v1beta/models/rehearsal-1"


def url(path: str, body: Json, *, stream: bool) -> tuple[str, Json]:
    """Where to send a body and how to ask for a stream: in the body, or in Gemini's path."""
    if path != GEMINI:
        return path, {**body, "stream": stream}
    return (f"{path}:streamGenerateContent?alt=sse" if stream else f"{path}:generateContent"), body


Case = tuple[str, Callable[[int], Json], Callable[[bytes], Answer], Callable[[Json], Answer]]
CASES: list[Case] = [
    ("/v1/messages", anthropic_body, read_anthropic, whole_anthropic),
    ("/v1/chat/completions", chat_body, read_chat, whole_chat),
    ("/v1/responses", responses_body, read_responses, whole_responses),
    (GEMINI, gemini_body, read_gemini, whole_gemini),
]
dialects = pytest.mark.parametrize("case", CASES, ids=["anthropic", "openai_chat", "openai_responses", "gemini"])


async def ask(case: Case, turns: int, *, stream: bool, http: Any) -> Answer:
    path, body, read, whole = case
    target, asked = url(path, body(turns), stream=stream)
    response = await http.post(target, json=asked, headers=KEY)
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
    assert first.stop in ("tool_use", "tool_calls", "completed", "STOP")
    assert last.stop in ("end_turn", "stop", "completed", "STOP")


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
    if "promptTokenCount" in usage:
        prompt, out = usage["promptTokenCount"], usage["candidatesTokenCount"]
        assert usage["totalTokenCount"] == prompt + out
        assert usage["promptTokensDetails"] == [{"modality": "TEXT", "tokenCount": prompt}]
        read = usage["cachedContentTokenCount"]
        return prompt - read, read, 0, out
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
    assert uses[0][1] == 0
    for before, after in itertools.pairwise(uses):
        assert sum(after[:3]) > sum(before[:3])
    if case[0] == GEMINI:  # it says what it reads from its cache, and nothing of what it writes
        assert [read > 1000 for _, read, _, _ in uses] == [False, True, True]
    else:
        assert uses[0][2] > 1000  # the first turn writes
        assert all(after[1] == before[1] + before[2] for before, after in itertools.pairwise(uses))
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
    GEMINI: {529: "UNAVAILABLE", 500: "INTERNAL", 429: "RESOURCE_EXHAUSTED"},
}


def kind_of(path: str, error: Json) -> str:
    """The word by which a client of this dialect tells errors apart."""
    return str(error["status"] if path == GEMINI else error["type"])


@dialects
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_a_failure_step_answers_with_the_providers_error(case: Case, status: int) -> None:
    path, body, _, _ = case
    async with client(ending_in(f'{{"status": {status}}}')) as http:
        for stream in (True, False):
            target, asked = url(path, body(0), stream=stream)
            response = await http.post(target, json=asked, headers=KEY)
            error = (await response.json())["error"]
            assert response.status == status
            assert kind_of(path, error) == ERROR_TYPES[path][status]
            assert path != GEMINI or error["code"] == status
            assert error["message"]


@dialects
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_truncated_step_breaks_the_connection_in_the_middle(case: Case, stream: bool) -> None:
    path, body, read, _ = case
    async with client(ending_in('{"say": "This will not arrive whole, as you see here.", "truncate": true}')) as http:
        target, asked = url(path, body(0), stream=stream)
        response = await http.post(target, json=asked, headers=KEY)
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
        target, asked = url(path, body(0), stream=False)
        response = await http.post(target, json=asked, headers=headers)
        assert response.status == status
        assert (await response.json())["error"]["message"]


@dialects
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"model": 1}',
        b'{"model": "m", "messages": "x", "input": 3, "contents": "x"}',
        b'{"messages": [], "input": [], "contents": []}',
    ],
)
async def test_a_malformed_body_is_refused_as_the_provider_would(case: Case, body: bytes) -> None:
    async with client() as http:
        target, _ = url(case[0], {}, stream=False)
        response = await http.post(target, data=body, headers=KEY)
        assert response.status == 400
        kind = kind_of(case[0], (await response.json())["error"])
        assert kind == ("INVALID_ARGUMENT" if case[0] == GEMINI else "invalid_request_error")


@dialects
async def test_a_body_that_two_readers_could_read_differently_is_refused(case: Case) -> None:
    target, asked = url(case[0], case[1](0), stream=False)
    twice = json.dumps(asked)[:-1] + ', "tools": []}'  # the last of two keys would win in a lax reader
    async with client() as http:
        response = await http.post(target, data=twice.encode(), headers=KEY)
        assert response.status == 400 and "tools" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("root", ["/v1beta/models", "/v1/models"])
async def test_a_gemini_stream_is_an_array_unless_events_are_asked_for(root: str) -> None:
    async with client() as http:
        response = await http.post(f"{root}/rehearsal-1:streamGenerateContent", json=gemini_body(0), headers=KEY)
        assert response.content_type == "application/json"
        answer = read_gemini(await response.read())
        whole = await ask(CASES[3], 0, stream=False, http=http)
    assert answer.ended and answer.text == whole.text and answer.arguments == whole.arguments
    assert answer.usage == whole.usage


@pytest.mark.parametrize("call", ["rehearsal-1", "rehearsal-1:embedContent", ":generateContent", "a%2Fb:countTokens"])
async def test_another_gemini_call_is_not_found(call: str) -> None:
    async with client() as http:
        response = await http.post(f"/v1beta/models/{call}", json=gemini_body(0), headers=KEY)
        error = (await response.json())["error"]
    assert (response.status, error["code"], error["status"]) == (404, 404, "NOT_FOUND")


async def test_the_key_may_come_as_gemini_clients_send_it() -> None:
    async with client() as http:
        target, asked = url(GEMINI, gemini_body(0), stream=False)
        headers = {"x-goog-api-key": KEY["Authorization"].removeprefix("Bearer ")}
        assert (await http.post(target, json=asked, headers=headers)).status == 200


async def test_counting_tokens_gives_the_size_of_the_prompt() -> None:
    async with client() as http:
        response = await http.post("/v1/messages/count_tokens", json=anthropic_body(0), headers=KEY)
        counted = (await response.json())["input_tokens"]
        answer = await ask(CASES[0], 0, stream=False, http=http)
    assert counted == sum(normalised(answer.usage)[:3])


@pytest.mark.parametrize("wrapped", [True, False])
async def test_counting_gemini_tokens_gives_the_size_of_the_prompt(wrapped: bool) -> None:
    body = gemini_body(1)
    async with client() as http:
        asked = {"generateContentRequest": body} if wrapped else body
        response = await http.post(f"{GEMINI}:countTokens", json=asked, headers=KEY)
        counted = (await response.json())["totalTokens"]
        answer = await ask(CASES[3], 1, stream=False, http=http)
    assert counted == answer.usage["promptTokenCount"]


async def test_the_model_list_names_the_rehearsal_model() -> None:
    async with client() as http:
        response = await http.get("/v1/models", headers=KEY)
        assert [entry["id"] for entry in (await response.json())["data"]] == ["rehearsal-1"]
