"""Gemini generateContent: which fields and tools a harness may use.

The provider reads each field under two spellings, `camelCase` and `snake_case`, so both are one field here.
"""

from __future__ import annotations

import re
from typing import Any, Final

from controller.meter.admission.fields import Body, allow_only, check_fields, mapping, objects, token_limit
from controller.meter.admission.refusals import Refused

KNOWN: Final = frozenset(
    {
        "contents",
        "generationConfig",
        "labels",
        "model",
        "safetySettings",
        "serviceTier",
        "systemInstruction",
        "toolConfig",
        "tools",
    }
)
OFF: Final = frozenset({"cachedContent", "continuationToken", "store"})
CONFIG_KNOWN: Final = frozenset(
    {
        "candidateCount",
        "frequencyPenalty",
        "logprobs",
        "maxOutputTokens",
        "mediaResolution",
        "presencePenalty",
        "responseFormat",
        "responseJsonSchema",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
    }
)
CONFIG_OFF: Final = frozenset(
    {
        "audioTimestamp",
        "audioTranscriptionConfig",
        "continuationToken",
        "enableEnhancedCivicAnswers",
        "imageConfig",
        "modelSelectionConfig",
        "routingConfig",
        "speechConfig",
    }
)
TOOL_KNOWN: Final = frozenset({"functionDeclarations"})
TOOL_OFF: Final = frozenset(
    {
        "codeExecution",
        "computerUse",
        "enterpriseWebSearch",
        "exaAiSearch",
        "fileSearch",
        "googleMaps",
        "googleSearch",
        "googleSearchRetrieval",
        "mcpServers",
        "parallelAiSearch",
        "retrieval",
        "urlContext",
    }
)
COUNT_KNOWN: Final = frozenset({"contents", "generateContentRequest"})
_WORD: Final = re.compile(r"_([a-z0-9])")


def check(body: Body, model: str, *, where: str = "") -> int | None:
    """The output limit the request sets. Raises Refused(400) naming the field."""
    named = _one_spelling(body, where)
    check_fields(named, known=KNOWN, off=OFF, where=where)
    allow_only(named, "model", (model, f"models/{model}"), where=where)
    allow_only(named, "serviceTier", ("standard", "STANDARD", "unspecified"), where=where)
    _check_tools(named, where)
    return _check_config(named, f"{where}generationConfig.")


def check_count(body: Body, model: str) -> None:
    """As `check`, for a request to count tokens. Raises Refused(400) naming the field."""
    named = _one_spelling(body, "")
    check_fields(named, known=COUNT_KNOWN, off=frozenset())
    check(mapping(named, "generateContentRequest"), model, where="generateContentRequest.")


def _check_tools(body: Body, where: str) -> None:
    for position, tool in enumerate(objects(body, "tools", where=where)):
        place = f"{where}tools[{position}]."
        named = _one_spelling(tool, place)
        for name in TOOL_OFF & named.keys():
            # Present is enough: the provider takes the empty object as the tool with its defaults.
            if named[name] is not None:
                raise Refused(400, f"{place}{name}: this tool runs at the provider and is switched off")
        check_fields(named, known=TOOL_KNOWN, off=TOOL_OFF, where=place)


def _check_config(body: Body, where: str) -> int | None:
    config = _one_spelling(mapping(body, "generationConfig", where=where.removesuffix("generationConfig.")), where)
    check_fields(config, known=CONFIG_KNOWN, off=CONFIG_OFF, where=where)
    allow_only(config, "candidateCount", (1,), where=where)
    allow_only(config, "responseModalities", ([], ["TEXT"]), where=where)
    return token_limit(config, ("maxOutputTokens",), where=where)


def _one_spelling(body: Body, where: str) -> dict[str, Any]:
    """The object with its names in `camelCase`. Raises Refused(400) for a field that is given in both spellings."""
    named: dict[str, Any] = {}
    for name, value in body.items():
        spelled = _WORD.sub(lambda found: found[1].upper(), name)
        if spelled in named:
            raise Refused(400, f"{where}{spelled[:80]}: given twice, in both of its spellings")
        named[spelled] = value
    return named
