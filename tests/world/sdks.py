"""The official SDKs, driven the way a harness drives them, with one face for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types

from controller.domain.usage import Dialect

SYSTEM = "You correct small programs. " * 20
TOOL_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SECONDS_MAX = 50.0


@dataclass(frozen=True)
class Heard:
    """An answer as the SDK's own types tell it."""

    text: str
    message_id: str
    usage: Mapping[str, int]  # by the provider's names


@dataclass(frozen=True)
class Call:
    """Where and what to ask. `turns` alternates user and assistant texts and ends with the user's."""

    base_url: str
    token: str
    model: str
    stream: bool = False
    retries: int = 0
    turns: Sequence[str] = ("What is wrong with calc.py?",)

    def saying(self, turns: Sequence[str]) -> Call:
        """The same call with other turns."""
        return replace(self, turns=tuple(turns))


@dataclass(frozen=True)
class Sdk:
    """One SDK in one way of using it."""

    name: str
    provider: str
    dialect: Dialect
    ask: Callable[[Call], Heard]
    labels_retries: bool = True

    def __str__(self) -> str:
        return self.name


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an SDK's error carries; None for a connection that broke."""
    for kind, name in ((anthropic.APIStatusError, "status_code"), (openai.APIStatusError, "status_code")):
        if isinstance(error, kind):
            return int(getattr(error, name))
    return error.code if isinstance(error, genai_errors.APIError) else None


def _roles(call: Call, model_role: str = "assistant") -> list[tuple[str, str]]:
    return [("user" if index % 2 == 0 else model_role, text) for index, text in enumerate(call.turns)]


def _anthropic_request(call: Call) -> dict[str, Any]:
    marked = {"cache_control": {"type": "ephemeral"}}
    messages: list[dict[str, Any]] = [
        {"role": role, "content": [{"type": "text", "text": text}]} for role, text in _roles(call)
    ]
    messages[-1]["content"][0] |= marked
    return {
        "model": call.model,
        "max_tokens": 1000,
        "system": [{"type": "text", "text": SYSTEM, **marked}],
        "tools": [{"name": "bash", "description": "Runs a command.", "input_schema": TOOL_SCHEMA}],
        "messages": messages,
        "extra_headers": {"anthropic-beta": "interleaved-thinking-2025-05-14"},
    }


def _anthropic_heard(message: Any) -> Heard:
    text = "".join(block.text for block in message.content if block.type == "text")
    return Heard(text, message.id, message.usage.model_dump(exclude_none=True))


def _anthropic_options(call: Call, *, bearer: bool = False) -> dict[str, Any]:
    credential = {"auth_token": call.token} if bearer else {"api_key": call.token}
    return {"base_url": call.base_url, "max_retries": call.retries, "timeout": SECONDS_MAX, **credential}


def ask_anthropic(call: Call, *, bearer: bool = False) -> Heard:
    with anthropic.Anthropic(**_anthropic_options(call, bearer=bearer)) as client:
        if not call.stream:
            return _anthropic_heard(client.messages.create(**_anthropic_request(call)))
        with client.messages.stream(**_anthropic_request(call)) as stream:
            return _anthropic_heard(stream.get_final_message())


def ask_anthropic_async(call: Call) -> Heard:
    async def ask() -> Heard:
        async with anthropic.AsyncAnthropic(**_anthropic_options(call)) as client:
            if not call.stream:
                return _anthropic_heard(await client.messages.create(**_anthropic_request(call)))
            async with client.messages.stream(**_anthropic_request(call)) as stream:
                return _anthropic_heard(await stream.get_final_message())

    return asyncio.run(ask())


def _openai_options(call: Call) -> dict[str, Any]:
    return {
        "base_url": f"{call.base_url}/v1",
        "api_key": call.token,
        "max_retries": call.retries,
        "timeout": SECONDS_MAX,
    }


def _chat_request(call: Call) -> dict[str, Any]:
    tool = {"name": "bash", "description": "Runs a command.", "parameters": TOOL_SCHEMA}
    return {
        "model": call.model,
        "max_completion_tokens": 1000,
        "messages": [
            {"role": "developer", "content": SYSTEM},
            *({"role": role, "content": text} for role, text in _roles(call)),
        ],
        "tools": [{"type": "function", "function": tool}],
        "prompt_cache_key": "conversation-1",
    }


class _ChatStream:
    """What a harness keeps of a Chat stream: the text, the id and the last usage."""

    def __init__(self) -> None:
        self._text, self._id = "", ""
        self._usage: dict[str, int] = {}

    def add(self, chunk: Any) -> None:
        self._id = chunk.id
        self._text += "".join(choice.delta.content or "" for choice in chunk.choices)
        if chunk.usage is not None:
            self._usage = chunk.usage.model_dump(exclude_none=True)

    def heard(self) -> Heard:
        return Heard(self._text, self._id, self._usage)


def _chat_heard(answer: Any) -> Heard:
    return Heard(answer.choices[0].message.content, answer.id, answer.usage.model_dump(exclude_none=True))


def ask_chat(call: Call) -> Heard:
    with openai.OpenAI(**_openai_options(call)) as client:
        if not call.stream:
            return _chat_heard(client.chat.completions.create(**_chat_request(call)))
        stream = _ChatStream()
        for chunk in client.chat.completions.create(**_chat_request(call), stream=True):
            stream.add(chunk)
        return stream.heard()


def ask_chat_async(call: Call) -> Heard:
    async def ask() -> Heard:
        async with openai.AsyncOpenAI(**_openai_options(call)) as client:
            if not call.stream:
                return _chat_heard(await client.chat.completions.create(**_chat_request(call)))
            stream = _ChatStream()
            async for chunk in await client.chat.completions.create(**_chat_request(call), stream=True):
                stream.add(chunk)
            return stream.heard()

    return asyncio.run(ask())


def _responses_request(call: Call) -> dict[str, Any]:
    return {
        "model": call.model,
        "max_output_tokens": 1000,
        "instructions": SYSTEM,
        "input": [{"role": role, "content": text} for role, text in _roles(call)],
        "tools": [{"type": "function", "name": "bash", "description": "", "parameters": TOOL_SCHEMA, "strict": False}],
        "prompt_cache_key": "conversation-1",
        "store": False,
        "extra_headers": {"session-id": "conversation-1"},
    }


def _responses_heard(answer: Any) -> Heard:
    return Heard(answer.output_text, answer.id, answer.usage.model_dump(exclude_none=True))


def ask_responses(call: Call) -> Heard:
    with openai.OpenAI(**_openai_options(call)) as client:
        if not call.stream:
            return _responses_heard(client.responses.create(**_responses_request(call)))
        with client.responses.stream(**_responses_request(call)) as stream:
            return _responses_heard(stream.get_final_response())


def ask_responses_async(call: Call) -> Heard:
    async def ask() -> Heard:
        async with openai.AsyncOpenAI(**_openai_options(call)) as client:
            if not call.stream:
                return _responses_heard(await client.responses.create(**_responses_request(call)))
            async with client.responses.stream(**_responses_request(call)) as stream:
                return _responses_heard(await stream.get_final_response())

    return asyncio.run(ask())


def _gemini_client(call: Call) -> genai.Client:
    return genai.Client(
        api_key=call.token,
        http_options=genai_types.HttpOptions(
            base_url=call.base_url,
            timeout=int(SECONDS_MAX * 1000),
            retry_options=genai_types.HttpRetryOptions(attempts=call.retries + 1, initial_delay=0.02, max_delay=0.02),
        ),
    )


def _gemini_request(call: Call) -> dict[str, Any]:
    return {
        "model": call.model,
        "contents": [
            genai_types.Content(role=role, parts=[genai_types.Part(text=text)]) for role, text in _roles(call, "model")
        ],
        "config": genai_types.GenerateContentConfig(
            system_instruction=SYSTEM,
            max_output_tokens=1000,
            automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True),
        ),
    }


def _gemini_heard(text: str, last: Any) -> Heard:
    return Heard(text, last.response_id, last.usage_metadata.model_dump(exclude_none=True))


def ask_gemini(call: Call) -> Heard:
    with _gemini_client(call) as client:
        if not call.stream:
            answer = client.models.generate_content(**_gemini_request(call))
            return _gemini_heard(answer.text or "", answer)
        chunks = list(client.models.generate_content_stream(**_gemini_request(call)))
        return _gemini_heard("".join(chunk.text or "" for chunk in chunks), chunks[-1])


def ask_gemini_async(call: Call) -> Heard:
    async def ask() -> Heard:
        async with _gemini_client(call).aio as client:
            if not call.stream:
                answer = await client.models.generate_content(**_gemini_request(call))
                return _gemini_heard(answer.text or "", answer)
            stream = await client.models.generate_content_stream(**_gemini_request(call))
            chunks = [chunk async for chunk in stream]
            return _gemini_heard("".join(chunk.text or "" for chunk in chunks), chunks[-1])

    return asyncio.run(ask())


def count_anthropic(call: Call) -> int:
    """How many tokens the SDK is told that the request has."""
    request = _anthropic_request(call)
    del request["max_tokens"]
    with anthropic.Anthropic(**_anthropic_options(call)) as client:
        return int(client.messages.count_tokens(**request).input_tokens)


def count_gemini(call: Call) -> int:
    """As `count_anthropic`."""
    request = _gemini_request(call)
    with _gemini_client(call) as client:
        return client.models.count_tokens(model=request["model"], contents=request["contents"]).total_tokens or 0


ANTHROPIC = Sdk("anthropic", "anthropic", "anthropic", ask_anthropic)
CHAT = Sdk("chat", "openai", "openai_chat", ask_chat)
RESPONSES = Sdk("responses", "openai", "openai_responses", ask_responses)
GEMINI = Sdk("gemini", "gemini", "gemini", ask_gemini, labels_retries=False)
SDKS = (ANTHROPIC, CHAT, RESPONSES, GEMINI)  # one way each
EVERY_WAY = (
    *SDKS,
    Sdk("anthropic-bearer", "anthropic", "anthropic", lambda call: ask_anthropic(call, bearer=True)),
    Sdk("anthropic-async", "anthropic", "anthropic", ask_anthropic_async),
    Sdk("chat-async", "openai", "openai_chat", ask_chat_async),
    Sdk("responses-async", "openai", "openai_responses", ask_responses_async),
    Sdk("gemini-async", "gemini", "gemini", ask_gemini_async, labels_retries=False),
)
