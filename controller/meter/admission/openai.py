"""OpenAI Chat Completions and Responses: which fields and tools a harness may use."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from controller.meter.admission.fields import Body, allow_only, check_fields, objects
from controller.meter.admission.refusals import Refused

BOTH_KNOWN: Final = frozenset(
    {
        "metadata",
        "model",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
    }
)
CHAT_KNOWN: Final = BOTH_KNOWN | {
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "n",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    # What mini-swe-agent's own client sends besides: neither costs anything, and a provider may refuse them.
    "drop_params",
    "usage",
    "verbosity",
}
CHAT_OFF: Final = frozenset({"audio", "moderation", "prediction", "web_search_options"})
RESPONSES_KNOWN: Final = BOTH_KNOWN | {
    "client_metadata",  # Codex CLI's own labels
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "reasoning",
    "text",
    "truncation",
}
RESPONSES_OFF: Final = frozenset(
    {
        "access_programs",
        "background",
        "background_options",
        "context_management",  # no field of the usage says what a compaction at the provider cost
        "conversation",
        "image",
        "moderation",
        "previous_response_id",
        "prompt",
    }
)
CLIENT_TOOLS: Final = ("function", "custom", "local_shell", "apply_patch")
DEFAULT_LIFETIME: Final = "30m"


def check_chat(body: Body) -> None:
    """Raises Refused(400) naming the field."""
    check_fields(body, known=CHAT_KNOWN, off=CHAT_OFF)
    allow_only(body, "n", (1,))
    allow_only(body, "stream", (True, False))  # a provider that reads 1 as true would stream without usage
    allow_only(body, "modalities", (["text"],))
    allow_only(body, "drop_params", (True, False))
    allow_only(body, "usage", ({"include": True}, {"include": False}))
    _check_both(body)


def check_responses(body: Body) -> None:
    """Raises Refused(400) naming the field."""
    check_fields(body, known=RESPONSES_KNOWN, off=RESPONSES_OFF)
    _check_both(body)


def _check_both(body: Body) -> None:
    allow_only(body, "service_tier", ("default", "auto"))
    _check_tools(objects(body, "tools"), "tools")


def _check_tools(tools: Iterable[Body], where: str) -> None:
    for position, tool in enumerate(tools):
        place, kind = f"{where}[{position}]", tool.get("type")
        if kind == "namespace" and where == "tools":  # a named group of tools, each checked for itself
            _check_tools(objects(tool, "tools", where=f"{place}."), f"{place}.tools")
        elif kind == "shell":
            environment = tool.get("environment")
            if not isinstance(environment, dict) or environment.get("type") != "local":
                raise Refused(400, f"{place}.environment: a hosted shell runs at the provider and is switched off")
        elif kind not in CLIENT_TOOLS:
            raise Refused(400, f"{place}.type: {str(kind)[:60]!r} runs at the provider and is switched off")


def asks_lifetime(body: Body) -> bool:
    """Whether the request asks for another lifetime of its cache writes than the default of thirty minutes."""
    options = body.get("prompt_cache_options")
    return isinstance(options, dict) and options.get("ttl") not in (None, DEFAULT_LIFETIME)


def with_usage_in_stream(raw: bytes, body: dict[str, Any]) -> tuple[bytes, tuple[str, ...]]:
    """A Chat stream reports usage only when asked, so the question is added; otherwise the bytes stay as they are."""
    if body.get("stream") is not True:
        return raw, ()
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") is True:
        return raw, ()
    if options is None and "stream_options" not in body:
        start = raw.index(b"{") + 1
        return raw[:start] + b'"stream_options":{"include_usage":true},' + raw[start:], (
            "stream_options.include_usage",
        )
    if options is not None and not isinstance(options, dict):
        raise Refused(400, "stream_options: must be an object")
    changed = body | {"stream_options": {**(options or {}), "include_usage": True}}
    return json.dumps(changed).encode(), ("stream_options.include_usage",)
