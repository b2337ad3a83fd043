"""Gemini generateContent, from Google's own service or from Vertex: each chunk repeats a cumulative usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.errors import UnpricedUsage
from controller.meter.dialects.gemini_usage import TIERS, TRAFFIC, usage_of
from controller.meter.dialects.reading import Reading, label, text_or_none
from controller.meter.wire_json import record


class GeminiReader:
    """Reads one generateContent response; the last usage wins and nothing is summed."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None
        self._id: object = None
        self._model: object = None
        self._tier: object = None
        self._grounded = False
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
        self._tier = payload.get("serviceTier") or self._tier
        self._grounded = self._grounded or any(candidate.get("groundingMetadata") for candidate in _candidates(payload))

    def seen(self) -> Reading:
        """Which response it is, and its usage as it came; see Reader."""
        return Reading(
            complete=self._complete and self._error is None,
            message_id=text_or_none(self._id),
            model=text_or_none(self._model),
            raw=self._raw or {},
            error=self._error,
        )

    def reading(self) -> Reading:
        """What the response said; see Reader."""
        if self._grounded:
            raise UnpricedUsage("groundingMetadata: grounding is charged per call, and no field says how often")
        raw = dict(self._raw or {})
        said = {"serviceTier": raw.pop("serviceTier", None) or self._tier}
        usage = None if self._raw is None else usage_of(raw).usage
        return replace(self.seen(), usage=usage, tier=_tier(said, raw))


def _tier(said: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    """The tier: Google's service names it, Vertex names the traffic. Raises UnpricedUsage when they disagree."""
    named = label(said, "serviceTier", {}, "").lower()
    traffic = label(raw, "trafficType", TRAFFIC, "")
    found = {TIERS.get(named, named), traffic} - {""}
    if len(found) > 1:
        raise UnpricedUsage(f"usage.trafficType: {traffic!r} is not the tier {named!r} that the answer names")
    return found.pop() if found else "standard"


def _candidates(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    candidates = payload.get("candidates")
    return [one for one in candidates if isinstance(one, dict)] if isinstance(candidates, list) else []


def _stopped(payload: Mapping[str, Any]) -> bool:
    feedback = payload.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason") is not None:
        return True
    return any(candidate.get("finishReason") is not None for candidate in _candidates(payload))
