"""Small readers of the four streams, written from the providers' documentation and not from our writers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from controller.adapters.rehearsal import RehearsalScript, app, parse_script

Json = dict[str, Any]

SCRIPT_TEXT = """{"schema": "fairtrial.rehearsal/1", "pass_percent": {"default": 100}, "variants": {"pass": [
  {"say": "First I read the file, \\u2028 – all of it.", "run": "cat 'a b.py'"},
  {"run": "sed -i 's/x/y/' a.py"},
  {"say": "Done."}]}}"""


def script(text: str = SCRIPT_TEXT) -> RehearsalScript:
    return parse_script(text.encode(), origin="rehearsal.json")


def ending_in(step: str) -> RehearsalScript:
    """A script whose only step is the given one."""
    return script(
        '{"schema": "fairtrial.rehearsal/1", "pass_percent": {"default": 100}, "variants": {"pass": [' + step + "]}}"
    )


def client(played: RehearsalScript | None = None, *, pause: Any = None) -> TestClient[Any, Any]:
    """A client of a fresh rehearsal model that knows the task `calc`."""
    options = {} if pause is None else {"pause": pause}
    return TestClient(TestServer(app({"calc": played or script()}, "seed", **options)))


KEY = {"Authorization": "Bearer rehearsal:calc:codex:1:1"}


@dataclass
class Answer:
    """What a client of any dialect gets out of a reply."""

    reply_id: str = ""
    text: str = ""
    tool: str | None = None
    arguments: str = ""
    call_id: str = ""
    usage: Json = field(default_factory=dict)
    stop: str | None = None
    ended: bool = False


def events(body: bytes) -> list[tuple[str | None, str]]:
    """(event name, data) of a server-sent event stream; lines end at LF only."""
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if "data" in fields:
            found.append((fields.get("event"), fields["data"]))
    return found


def read_anthropic(body: bytes) -> Answer:
    answer = Answer()
    for name, data in events(body):
        part = json.loads(data)
        assert name == part["type"]
        if name == "message_start":
            answer.reply_id, answer.usage = part["message"]["id"], dict(part["message"]["usage"])
        elif name == "content_block_start" and part["content_block"]["type"] == "tool_use":
            assert part["content_block"]["input"] == {}
            answer.tool, answer.call_id = part["content_block"]["name"], part["content_block"]["id"]
        elif name == "content_block_delta":
            answer.text += part["delta"].get("text", "")
            answer.arguments += part["delta"].get("partial_json", "")
        elif name == "message_delta":
            answer.stop = part["delta"]["stop_reason"]
            answer.usage |= part["usage"]
        elif name == "message_stop":
            answer.ended = True
    return answer


def read_chat(body: bytes) -> Answer:
    answer = Answer()
    for name, data in events(body):
        assert name is None
        if data == "[DONE]":
            answer.ended = True
            continue
        part = json.loads(data)
        answer.reply_id = part["id"]
        answer.usage = part.get("usage") or answer.usage
        for choice in part["choices"]:
            answer.text += choice["delta"].get("content") or ""
            answer.stop = choice["finish_reason"] or answer.stop
            for call in choice["delta"].get("tool_calls", []):
                answer.call_id = call.get("id", answer.call_id)
                answer.tool = call["function"].get("name", answer.tool)
                answer.arguments += call["function"]["arguments"]
    return answer


def read_responses(body: bytes) -> Answer:
    answer = Answer()
    for number, (name, data) in enumerate(events(body)):
        part = json.loads(data)
        assert (name, number) == (part["type"], part["sequence_number"])
        if name == "response.output_text.delta":
            answer.text += part["delta"]
        elif name in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            answer.arguments += part["delta"]
        elif name == "response.output_item.done" and part["item"]["type"] != "message":
            answer.tool, answer.call_id = part["item"]["name"], part["item"]["call_id"]
        elif name == "response.completed":
            response = part["response"]
            answer.reply_id, answer.usage, answer.stop = response["id"], response["usage"], response["status"]
            answer.ended = True
    return answer


def whole_gemini(body: Json) -> Answer:
    """One answer, or one chunk of a stream: both have the same form."""
    (candidate,) = body["candidates"]
    usage = body["usageMetadata"]
    answer = Answer(reply_id=body["responseId"], usage=usage, stop=candidate.get("finishReason"))
    answer.ended = answer.stop is not None
    for part in candidate["content"]["parts"]:
        answer.text += part.get("text", "")
        if "functionCall" in part:
            call = part["functionCall"]
            answer.tool, answer.call_id, answer.arguments = call["name"], call["id"], json.dumps(call["args"])
    return answer


def read_gemini(body: bytes) -> Answer:
    """Events with `alt=sse`, one array without."""
    if body.startswith(b"["):
        chunks = json.loads(body)
    else:
        found = events(body)
        assert all(name is None for name, _ in found)
        chunks = [json.loads(data) for _, data in found]
    answer = Answer()
    for chunk in map(whole_gemini, chunks):
        assert not answer.ended, "nothing follows the chunk that says why the model stopped"
        chunk.text = answer.text + chunk.text
        answer = chunk
    return answer
