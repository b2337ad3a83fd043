"""Anthropic Messages: the counters of a stream are cumulative, and a null one keeps what was said before.

Sources: the provider's pricing, prompt-caching, streaming and refusals pages, and its SDK's stream accumulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from controller.errors import UnpricedUsage
from controller.meter.dialects.anthropic_usage import usage_of
from controller.meter.dialects.reading import Reading, label, text_or_none
from controller.meter.wire_json import record

REFUSAL_RULE: Final = "anthropic: a refusal before any output is not billed"
REPLACED_WHEN_GIVEN: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "server_tool_use",
    "output_tokens_details",
    "iterations",
    "service_tier",
    "speed",
    "inference_geo",
)
GEOS: Final = {"not_available": "global"}


class AnthropicReader:
    """Reads one Messages response."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._stop_reason: object = None
        self._container: object = None
        self._output_begun = False
        self._final_usage = False
        self._complete = False
        self._ended = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response."""
        if payload.get("type") == "error" or payload.get("error") is not None:
            self._error = "the answer is an error"
        self._start(payload)
        self._stop_reason = payload.get("stop_reason")
        self._output_begun = bool(payload.get("content"))
        self._complete = self._usage is not None

    def event(self, name: str, data: bytes) -> None:
        """One stream event; unknown ones are tolerated, as the provider asks."""
        if name in ("content_block_delta", "content_block_stop", "ping"):
            return
        payload = record(data)
        kind = name or payload.get("type")
        if self._ended and kind in ("message_start", "message_delta"):
            self._error = "usage was sent after the end of the message"
        elif kind == "message_start" and self._message:
            self._error = "the stream holds two messages"
        elif kind == "message_start":
            self._start(payload.get("message"))
        elif kind == "content_block_start":
            self._output_begun = True
        elif kind == "message_delta":
            delta = payload.get("delta")
            if isinstance(delta, dict):
                self._stop_reason = delta.get("stop_reason") or self._stop_reason
                self._container = self._container or delta.get("container")
            self._merge(payload.get("usage"))
            self._final_usage = self._final_usage or _counts_output(payload.get("usage"))
        elif kind == "message_stop":
            # What message_start counts is only the beginning.
            self._complete, self._ended = self._final_usage, True
        elif kind == "error":
            self._error = "the stream ended with an error event"

    def _start(self, message: object) -> None:
        if isinstance(message, dict):
            self._message = {"id": message.get("id"), "model": message.get("model")}
            self._container = message.get("container")
            self._merge(message.get("usage"))

    def _merge(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        merged = self._usage or {}
        for key, value in usage.items():
            # A null or absent counter in a delta keeps what message_start said; an explicit zero replaces it.
            if value is not None or key not in merged or key not in REPLACED_WHEN_GIVEN:
                merged[key] = value
        self._usage = merged

    def seen(self) -> Reading:
        """Which response it is, and its usage as it came; see Reader."""
        return Reading(
            complete=self._complete and self._error is None,
            final=self._ended,
            message_id=text_or_none(self._message.get("id")),
            model=text_or_none(self._message.get("model")),
            raw=self._usage or {},
            error=self._error,
        )

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        if self._container is not None:
            raise UnpricedUsage("container: charged by its time, and no field says how long it ran")
        raw = self._usage or {}
        counted = None if self._usage is None else usage_of(raw)
        refused = self._stop_reason == "refusal" and not self._output_begun
        return replace(
            self.seen(),
            usage=counted.usage if counted else None,
            tier=label(raw, "service_tier", {}, "standard"),
            speed=label(raw, "speed", {}, "standard"),
            geo=label(raw, "inference_geo", GEOS, "global"),
            assumes_lifetime=counted.assumes_lifetime if counted else False,
            samplings=counted.samplings if counted else 1,
            zero_bill_rule=REFUSAL_RULE if refused and self._complete else None,
        )


def _counts_output(usage: object) -> bool:
    return isinstance(usage, dict) and usage.get("output_tokens") is not None
