"""One reader per dialect. Each turns a provider's own usage fields into disjoint billable classes.

The three families mean different things by "input tokens"; nothing outside this package may read a raw usage object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from controller.meter.dialects.anthropic import AnthropicReader
from controller.meter.dialects.bedrock import BedrockReader
from controller.meter.dialects.gemini import GeminiReader
from controller.meter.dialects.openai import ChatReader, ResponsesReader
from controller.meter.dialects.reading import Reader, Reading

READERS: Final[Mapping[str, Callable[[], Reader]]] = {
    "anthropic": AnthropicReader,
    "openai_chat": ChatReader,
    "openai_responses": ResponsesReader,
    "gemini": GeminiReader,
    "bedrock_converse": BedrockReader,
}

__all__ = ["READERS", "Reader", "Reading"]
