"""Every field that the official SDKs can send was decided upon: allowed, or switched off."""

from __future__ import annotations

import typing

import pytest
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from google.genai import types
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from controller.meter.admission import anthropic, gemini, openai

# The model and the contents are arguments beside the configuration; these configure the SDK and are not sent.
NOT_SENT = {
    "httpOptions",
    "shouldReturnHttpResponse",
    "automaticFunctionCalling",
    "automaticContinuation",
    "generationOutputConfig",
    "modelArmorConfig",
}


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@pytest.mark.parametrize(
    ("params", "known", "off"),
    [
        (message_create_params.MessageCreateParamsNonStreaming, anthropic.KNOWN, anthropic.OFF),
        (beta_message_create_params.MessageCreateParamsNonStreaming, anthropic.KNOWN, anthropic.OFF),
        (completion_create_params.CompletionCreateParamsStreaming, openai.CHAT_KNOWN, openai.CHAT_OFF),
        (response_create_params.ResponseCreateParamsStreaming, openai.RESPONSES_KNOWN, openai.RESPONSES_OFF),
    ],
    ids=["anthropic", "anthropic beta", "openai chat", "openai responses"],
)
def test_every_field_of_the_sdk_is_decided(params: type, known: frozenset[str], off: frozenset[str]) -> None:
    assert not known & off
    assert set(typing.get_type_hints(params)) - known - off == set()


def test_every_field_of_the_gemini_sdk_is_decided() -> None:
    known = gemini.KNOWN | gemini.CONFIG_KNOWN
    off = gemini.OFF | gemini.CONFIG_OFF
    assert not known & off and not gemini.TOOL_KNOWN & gemini.TOOL_OFF
    assert {camel(name) for name in types.GenerateContentConfig.model_fields} - known - off - NOT_SENT == set()
    assert {camel(name) for name in types.Tool.model_fields} - gemini.TOOL_KNOWN - gemini.TOOL_OFF == set()
