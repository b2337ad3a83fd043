"""Gemini and Bedrock Converse usage objects, for pricing a record by hand; the proxy does not route them yet.

Gemini counts cached tokens inside the prompt and thoughts outside the candidates. Bedrock Converse counts cache
buckets outside the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import Reading, check_usage, counter, entries, section, text_or_none, tokens_of
from controller.meter.wire_json import record

GEMINI_KNOWN: Final = frozenset(
    {
        "promptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "toolUsePromptTokenCount",
        "totalTokenCount",
        "promptTokensDetails.*",  # per-modality subsets; only text is priced here, see _check_text_only
        "cacheTokensDetails.*",
        "candidatesTokensDetails.*",
        "toolUsePromptTokensDetails.*",
    }
)
BEDROCK_KNOWN: Final = frozenset(
    {
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cacheReadInputTokens",
        "cacheWriteInputTokens",
    }
)


def gemini_usage_of(raw: Mapping[str, Any]) -> Usage:
    """Disjoint classes of one `usageMetadata`. Raises UnpricedUsage when its total contradicts its parts."""
    check_usage(raw, GEMINI_KNOWN)
    _check_text_only(raw)
    prompt, cached = counter(raw, "promptTokenCount"), counter(raw, "cachedContentTokenCount")
    candidates, thoughts = counter(raw, "candidatesTokenCount"), counter(raw, "thoughtsTokenCount")
    tools = counter(raw, "toolUsePromptTokenCount")
    if raw.get("totalTokenCount") is not None:
        total = counter(raw, "totalTokenCount")
        if total != prompt + candidates + thoughts + tools:
            raise UnpricedUsage(f"usage.totalTokenCount: {total} is not prompt + candidates + thoughts + tool use")
    if cached > prompt:
        raise UnpricedUsage(f"usage.cachedContentTokenCount: {cached} exceeds the prompt's {prompt}")
    return Usage(tokens=tokens_of(in_=prompt - cached + tools, read=cached, out=candidates + thoughts))


def _check_text_only(raw: Mapping[str, Any]) -> None:
    for name in ("promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails", "toolUsePromptTokensDetails"):
        for entry in entries(raw, name):
            if entry.get("modality") not in ("TEXT", None) and entry.get("tokenCount"):
                raise UnpricedUsage(f"usage.{name}: modality {entry.get('modality')!r} is not priced here")


def bedrock_usage_of(raw: Mapping[str, Any]) -> Usage:
    """Disjoint classes of one Converse usage object."""
    check_usage(raw, BEDROCK_KNOWN)
    plain, out = counter(raw, "inputTokens"), counter(raw, "outputTokens")
    read, written = counter(raw, "cacheReadInputTokens"), counter(raw, "cacheWriteInputTokens")
    if raw.get("totalTokens") is not None and counter(raw, "totalTokens") != plain + out + read + written:
        raise UnpricedUsage(f"usage.totalTokens: {raw['totalTokens']} is not the sum of its parts")
    return Usage(tokens=tokens_of(in_=plain, read=read, w5m=written, out=out))


class GeminiReader:
    """Reads one generateContent response; each chunk repeats a cumulative usage, so the last wins."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None
        self._id: object = None
        self._model: object = None
        self._finished = False
        self._complete = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response, or one chunk of a stream that arrived whole."""
        self._note(payload)
        self._complete = self._raw is not None

    def event(self, name: str, data: bytes) -> None:
        """One chunk. The stream has no end mark: what follows the reason why the model stopped is complete."""
        payload = record(data)
        self._note(payload)
        self._finished = self._finished or _stopped(payload)
        self._complete = self._finished and (self._complete or isinstance(payload.get("usageMetadata"), dict))

    def _note(self, payload: Mapping[str, Any]) -> None:
        if payload.get("error") is not None:
            self._error = "the answer carried an error"
        if isinstance(payload.get("usageMetadata"), dict):
            self._raw = dict(payload["usageMetadata"])
        self._id = payload.get("responseId") or self._id
        self._model = payload.get("modelVersion") or self._model

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        raw = self._raw
        return Reading(
            complete=self._complete and self._error is None,
            usage=None if raw is None else gemini_usage_of(raw),
            message_id=text_or_none(self._id),
            model=text_or_none(self._model),
            raw=raw or {},
            error=self._error,
        )


def _stopped(payload: Mapping[str, Any]) -> bool:
    feedback = payload.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason") is not None:
        return True
    candidates = payload.get("candidates")
    return isinstance(candidates, list) and any(
        isinstance(candidate, dict) and candidate.get("finishReason") is not None for candidate in candidates
    )


class BedrockReader:
    """Reads the metadata event of one Converse stream, or a whole Converse response."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response, or the metadata event."""
        source = section(payload, "metadata", where="response") or payload
        if isinstance(source.get("usage"), dict):
            self._raw = dict(source["usage"])

    def event(self, name: str, data: bytes) -> None:
        """One event of the stream, already unframed."""
        self.body(record(data))

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        raw = self._raw
        return Reading(complete=raw is not None, usage=None if raw is None else bedrock_usage_of(raw), raw=raw or {})
