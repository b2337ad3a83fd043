"""OpenAI Chat Completions and Responses: cached and written tokens lie inside the input, reasoning inside the output.

Sources: the provider's prompt-caching, priority and flex pages, and its SDK's response types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.domain.usage import Usage
from controller.errors import UnpricedUsage
from controller.meter.dialects.reading import (
    Reading,
    check_known,
    check_usage,
    counter,
    section,
    text_or_none,
    tokens_of,
)
from controller.meter.wire_json import record

TIERS: Final = {"default": "standard", "auto": "standard", "standard": "standard"}
CHAT_KNOWN: Final = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details.cached_tokens",
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_write_tokens_details.ttl_30m_tokens",
        "prompt_tokens_details.cache_write_tokens_details.ttl_12h_tokens",
        "prompt_tokens_details.audio_tokens",
        "prompt_tokens_details.image_tokens",
        "prompt_tokens_details.text_tokens",
        "completion_tokens_details.reasoning_tokens",
        "completion_tokens_details.accepted_prediction_tokens",
        "completion_tokens_details.rejected_prediction_tokens",  # billed, and inside completion_tokens
        "completion_tokens_details.audio_tokens",
        "completion_tokens_details.image_tokens",
        "completion_tokens_details.text_tokens",
    }
)
RESPONSES_KNOWN: Final = frozenset(
    path.replace("prompt_tokens", "input_tokens").replace("completion_tokens", "output_tokens") for path in CHAT_KNOWN
)


def usage_of(raw: Mapping[str, Any], *, input_name: str, output_name: str) -> Usage:
    """Disjoint classes of one usage object. Raises UnpricedUsage when it contradicts itself or is not understood."""
    check_usage(raw, CHAT_KNOWN if input_name == "prompt_tokens" else RESPONSES_KNOWN)
    inside = section(raw, f"{input_name}_details")
    outside = section(raw, f"{output_name}_details")
    where = f"usage.{input_name}_details"
    total_in, total_out = counter(raw, input_name), counter(raw, output_name)
    cached = counter(inside, "cached_tokens", where=where)
    written = counter(inside, "cache_write_tokens", where=where)
    split = section(inside, "cache_write_tokens_details", where=where)
    half_hour = counter(split, "ttl_30m_tokens", where=where)
    half_day = counter(split, "ttl_12h_tokens", where=where)
    if not split:
        half_hour = written
    elif inside.get("cache_write_tokens") is not None and half_hour + half_day != written:
        raise UnpricedUsage(f"{where}: {half_hour} + {half_day} written is not the total {written}")
    audio_in, image_in = (counter(inside, f"{kind}_tokens", where=where) for kind in ("audio", "image"))
    audio_out, image_out = (counter(outside, f"{kind}_tokens") for kind in ("audio", "image"))
    plain = total_in - cached - half_hour - half_day - audio_in - image_in
    text_out = total_out - audio_out - image_out
    if plain < 0 or text_out < 0:
        raise UnpricedUsage(f"usage: the details exceed their total ({total_in} in, {total_out} out)")
    if raw.get("total_tokens") is not None and counter(raw, "total_tokens") != total_in + total_out:
        raise UnpricedUsage(f"usage.total_tokens: {raw['total_tokens']} is not {total_in} + {total_out}")
    return Usage(
        tokens=tokens_of(
            in_=plain,
            read=cached,
            w30m=half_hour,
            w12h=half_day,
            in_audio=audio_in,
            in_image=image_in,
            out=text_out,
            out_audio=audio_out,
            out_image=image_out,
        )
    )


def _tier(value: object) -> str:
    return "standard" if value is None or value == "" else TIERS.get(str(value), str(value))


DECIDING: Final = (b'"error"', b'"service_tier"', b"\\u")


def _without_null(data: bytes) -> bytes:
    return data.replace(b'"usage":null', b"").replace(b'"usage": null', b"")


class ChatReader:
    """Reads one Chat Completions response. In a stream the last usage object wins; nothing is summed."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None
        self._id: object = None
        self._model: object = None
        self._service_tier: object = None
        self._done = False
        self._final_usage = False
        self._error: str | None = None

    def body(self, payload: Mapping[str, Any]) -> None:
        """A whole response."""
        self._note(payload)
        self._done = True

    def event(self, name: str, data: bytes) -> None:
        """One chunk; the data `[DONE]` ends the stream."""
        if data == b"[DONE]":
            self._done = True
            return
        # Most chunks carry text only. Inside a JSON string these names would have their quotes escaped, so a chunk
        # without them holds nothing that is read here; anything doubtful is parsed.
        if (
            self._id is not None
            and not any(name in data for name in DECIDING)
            and b'"usage"' not in _without_null(data)
        ):
            return
        payload = record(data)
        if self._done and payload.get("usage") is not None:
            self._error = "usage was sent after the end of the stream"
        self._note(payload)
        if isinstance(payload.get("usage"), dict) and payload.get("choices") == []:
            self._final_usage = True

    def _note(self, payload: Mapping[str, Any]) -> None:
        if payload.get("error") is not None:
            self._error = "the answer carried an error"
        self._id = payload.get("id") or self._id
        self._model = payload.get("model") or self._model
        self._service_tier = payload.get("service_tier") or self._service_tier
        if isinstance(payload.get("usage"), dict):
            self._raw = dict(payload["usage"])

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        raw = self._raw
        usage = None if raw is None else usage_of(raw, input_name="prompt_tokens", output_name="completion_tokens")
        return Reading(
            complete=raw is not None and (self._done or self._final_usage) and self._error is None,
            final=self._done,
            usage=usage,
            message_id=text_or_none(self._id),
            model=text_or_none(self._model),
            tier=_tier(self._service_tier),
            raw=raw or {},
            error=self._error,
        )


class ResponsesReader:
    """Reads one Responses answer; `completed`, `incomplete` and `failed` all carry billable usage."""

    # Tuples, since an answer may hold anything where a word is due, also what a set can't look up.
    STATUSES: Final = ("completed", "incomplete", "failed", "cancelled")
    TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._complete = False
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
            self._note(payload.get("response"))
            self._complete = True
        elif kind == "response.created":
            self._note(payload.get("response"))
        elif kind == "error":
            self._error = "the stream carried an error event"

    def _note(self, response: object) -> None:
        if not isinstance(response, dict):
            return
        kept = ("id", "model", "service_tier", "usage", "tool_usage")
        self._response |= {key: response[key] for key in kept if response.get(key) is not None}

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        raw = self._response.get("usage")
        usage = None
        if isinstance(raw, dict):
            usage = usage_of(raw, input_name="input_tokens", output_name="output_tokens")
            usage = Usage(tokens=usage.tokens, units=_tool_units(self._response.get("tool_usage")))
        return Reading(
            complete=usage is not None and self._complete and self._error is None,
            final=self._complete,
            usage=usage,
            message_id=text_or_none(self._response.get("id")),
            model=text_or_none(self._response.get("model")),
            tier=_tier(self._response.get("service_tier")),
            raw=raw if isinstance(raw, dict) else {},
            error=self._error,
        )


def _tool_units(tool_usage: object) -> dict[str, int]:
    """Billable calls. Only web searches are billed per call; any other non-zero count is not understood here."""
    if not isinstance(tool_usage, dict):
        return {}
    check_known(tool_usage, ("web_search.num_requests",))
    searches = counter(section(tool_usage, "web_search"), "num_requests", where="tool_usage.web_search")
    return {"web_search": searches} if searches else {}
