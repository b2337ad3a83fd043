"""OpenAI Chat Completions and Responses: where an answer, whole or streamed, says what it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from controller.domain.usage import Usage
from controller.meter.dialects.openai_usage import TIERS, chat_usage_of, item_kinds, responses_usage_of, tool_units
from controller.meter.dialects.reading import Reading, label, text_or_none
from controller.meter.wire_json import record

DECIDING: Final = (b'"error"', b'"service_tier"', b'"usage"', b"\\u")
NO_USAGE: Final = (b'"usage":null', b'"usage": null')
SAME_TIER: Final = (b'"service_tier":"default"', b'"service_tier": "default"')


class ChatReader:
    """Reads one Chat Completions response. In a stream the last usage object wins; nothing is summed."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None
        self._id: object = None
        self._model: object = None
        self._service_tier: object = None
        self._done = False
        self._ended = False
        self._final_usage = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response."""
        self._note(payload)
        self._done = True

    def event(self, name: str, data: bytes) -> None:
        """One chunk; the data `[DONE]` ends the stream."""
        if data == b"[DONE]":
            self._done = self._ended = True
            return
        if self._id is not None and not name and not self._decides(data):
            return
        payload = record(data)
        if name == "error":
            self._error = "the stream carried an error event"
        if self._done and payload.get("usage") is not None:
            self._error = "usage was sent after the end of the stream"
        self._note(payload)
        if isinstance(payload.get("usage"), dict) and payload.get("choices") == []:
            self._final_usage = True

    def _decides(self, data: bytes) -> bool:
        # Most chunks carry text only. Inside a JSON string these names would have their quotes escaped, so a chunk
        # without them holds nothing that is read here; anything doubtful is parsed.
        for pair in NO_USAGE + SAME_TIER if self._service_tier == "default" else NO_USAGE:
            data = data.replace(pair, b"")
        return any(word in data for word in DECIDING)

    def _note(self, payload: Mapping[str, Any]) -> None:
        if payload.get("error") is not None:
            self._error = "the answer carried an error"
        self._id = payload.get("id") or self._id
        self._model = payload.get("model") or self._model
        self._service_tier = payload.get("service_tier") or self._service_tier
        if isinstance(payload.get("usage"), dict):
            self._raw = dict(payload["usage"])

    def seen(self) -> Reading:
        """Which response it is, and its usage as it came; see Reader."""
        return Reading(
            complete=self._raw is not None and (self._done or self._final_usage) and self._error is None,
            final=self._ended,
            message_id=text_or_none(self._id),
            model=text_or_none(self._model),
            raw=self._raw or {},
            error=self._error,
        )

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        tier = label({"service_tier": self._service_tier}, "service_tier", TIERS, "standard", where="response")
        if self._raw is None:
            return replace(self.seen(), tier=tier)
        counted = chat_usage_of(self._raw)
        return replace(self.seen(), usage=counted.usage, assumes_lifetime=counted.assumes_lifetime, tier=tier)


class ResponsesReader:
    """Reads one Responses answer; `completed`, `incomplete` and `failed` all carry billable usage."""

    # Tuples, since an answer may hold anything where a word is due, also what a set can't look up.
    STATUSES: Final = ("completed", "incomplete", "failed", "cancelled")
    TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._items: frozenset[str] = frozenset()
        self._complete = False
        self._ended = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response."""
        self._note(payload)
        self._complete = payload.get("status") in (*self.STATUSES, None)

    def event(self, name: str, data: bytes) -> None:
        """One stream event; only the terminal ones and the first are read."""
        if name and name not in self.TERMINAL and name not in ("response.created", "error"):
            return
        payload = record(data)
        kind = name or payload.get("type")
        if self._complete and kind in self.TERMINAL:
            self._error = "the stream ended twice"
        elif kind in self.TERMINAL:
            for early in ("usage", "tool_usage"):  # what was counted before the end is no answer's usage
                self._response.pop(early, None)
            self._note(payload.get("response"))
            self._complete = self._ended = True
        elif kind == "response.created":
            self._note(payload.get("response"))
        elif kind == "error":
            self._error = "the stream carried an error event"

    def _note(self, response: object) -> None:
        if not isinstance(response, dict):
            return
        kept = ("id", "model", "service_tier", "usage", "tool_usage", "prompt_cache_options")
        self._response |= {key: response[key] for key in kept if response.get(key) is not None}
        self._items |= item_kinds(response.get("output"))

    def seen(self) -> Reading:
        """Which response it is, and its usage as it came; see Reader."""
        raw = self._response.get("usage")
        return Reading(
            complete=isinstance(raw, dict) and self._complete and self._error is None,
            final=self._ended,
            message_id=text_or_none(self._response.get("id")),
            model=text_or_none(self._response.get("model")),
            raw=raw if isinstance(raw, dict) else {},
            error=self._error,
        )

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        said, seen = self._response, self.seen()
        tier = label(said, "service_tier", TIERS, "standard", where="response")
        if not isinstance(said.get("usage"), dict):
            return replace(seen, tier=tier)
        options = said.get("prompt_cache_options")
        counted = responses_usage_of(seen.raw, options.get("ttl") if isinstance(options, dict) else None)
        usage = Usage(tokens=counted.usage.tokens, units=tool_units(said.get("tool_usage"), self._items))
        return replace(seen, usage=usage, assumes_lifetime=counted.assumes_lifetime, tier=tier)
