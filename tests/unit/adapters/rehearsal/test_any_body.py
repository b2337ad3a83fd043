"""No request body, however odd, makes the model fail in a way that the provider would not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.adapters.rehearsal.anthropic import AnthropicMessages
from controller.adapters.rehearsal.cell import Cell
from controller.adapters.rehearsal.conversation import Dialect, RequestRefused
from controller.adapters.rehearsal.gemini import GeminiContent
from controller.adapters.rehearsal.openai_chat import OpenAIChat
from controller.adapters.rehearsal.openai_responses import OpenAIResponses
from controller.adapters.rehearsal.play import current_step, reply_to
from tests.unit.adapters.rehearsal.reading import (
    read_anthropic,
    read_chat,
    read_gemini,
    read_responses,
    script,
)

CELL = Cell(task="calc", arm="codex", replicate=1, attempt=1)
FIELDS = [
    "model",
    "messages",
    "input",
    "tools",
    "system",
    "instructions",
    "stream_options",
    "role",
    "content",
    "type",
    "text",
    "name",
    "function",
    "parameters",
    "input_schema",
    "properties",
    "required",
    "command",
    "cmd",
    "tool_calls",
    "description",
    "local_shell",
    "custom",
    "bash_20250124",
    "contents",
    "parts",
    "systemInstruction",
    "functionDeclarations",
    "functionCall",
    "parametersJsonSchema",
]
NAMES = st.sampled_from(FIELDS)
WORDS = st.one_of(
    NAMES,
    st.sampled_from(["assistant", "model", "user", "tool_use", "function_call", "bash", "exec"]),
    st.text(max_size=9),
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), WORDS, st.just("\ud800"))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6), max_leaves=12
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=8).map(lambda body: {"model": "rehearsal-1", **body})
READERS: list[tuple[Dialect, Any]] = [
    (AnthropicMessages(), read_anthropic),
    (OpenAIChat(), read_chat),
    (OpenAIResponses(), read_responses),
    (GeminiContent("rehearsal-1", is_streamed=True), read_gemini),
    (GeminiContent("rehearsal-1", is_streamed=True, is_array=True), read_gemini),
]


@pytest.mark.parametrize(
    ("dialect", "read"), READERS, ids=["anthropic", "openai_chat", "openai_responses", "gemini", "gemini_array"]
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is not a fault
@given(body=BODIES)
def test_any_body_is_answered_or_refused(dialect: Dialect, read: Any, body: dict[str, Any]) -> None:
    try:
        conversation = dialect.read(body)
    except RequestRefused as refusal:
        assert refusal.status == 400
        return
    step = current_step(script(), CELL, conversation, chance_seed="seed")
    reply = reply_to(step, CELL, conversation, sequence=1)
    assert 0 <= reply.tokens.cache_read <= reply.tokens.prompt
    assert min(reply.tokens.uncached, reply.tokens.cache_write, reply.tokens.output) >= 0
    json.dumps(dialect.whole(reply))
    if reply.call is None or reply.call.kind in ("function", "custom"):
        answer = read(b"".join(dialect.stream(reply, include_usage=True)))
        assert answer.ended and answer.text == reply.text
