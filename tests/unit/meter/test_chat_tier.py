"""The tier of a Chat stream is the last one named, whichever chunks named one before."""

from __future__ import annotations

import json

import pytest

from controller.meter.dialects import READERS

USAGE = {"prompt_tokens": 30, "completion_tokens": 4}


@pytest.mark.parametrize(
    ("named", "tier"),
    [
        (["default"] * 4, "standard"),
        (["default", "default", "priority", "default"], "standard"),
        (["default", "default", "priority", None], "priority"),
        (["priority", "default", "default", None], "standard"),
        (["default", "flex", "flex", None], "flex"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_last_tier_named_is_the_tier(named: list[str | None], tier: str, separators: tuple[str, str]) -> None:
    reader = READERS["openai_chat"]()
    for position, name in enumerate(named):
        last = position == len(named) - 1
        chunk: dict[str, object] = {
            "id": "msg_1",
            "model": "m",
            "choices": [] if last else [{"delta": {"content": "x"}}],
        }
        chunk |= {"usage": USAGE if last else None} | ({"service_tier": name} if name else {})
        reader.event("", json.dumps(chunk, separators=separators).encode())
    reader.event("", b"[DONE]")
    assert reader.reading().tier == tier
