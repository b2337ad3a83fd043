"""A harness may write anything into its log and its report files; reading them never fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.launch import LaunchContext
from controller.harnesses import HARNESSES

WORDS = st.sampled_from(
    ["type", "item", "usage", "item.completed", "turn.completed", "command_execution", "input_tokens", "output_tokens",
     "info", "model_stats", "instance_cost", "api_calls", "messages", "role", "assistant", "tool_calls", "extra",
     "response", "prompt_tokens", "completion_tokens"]
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=16,
)
EVENT = st.fixed_dictionaries({"type": st.one_of(WORDS, JSON), "item": JSON, "usage": JSON})
TRAJECTORY = st.fixed_dictionaries({"info": JSON, "messages": st.one_of(st.lists(JSON, max_size=3), JSON)})
CONTEXT = LaunchContext(
    prompt="p", base_url="http://127.0.0.1:8080", token="t", model="m", settings={}, workspace="/workspace"
)


@pytest.mark.parametrize("name", sorted(HARNESSES))
@given(events=st.lists(st.one_of(EVENT, JSON), max_size=4), report=st.one_of(TRAJECTORY, JSON))
def test_whatever_a_harness_writes_is_read(name: str, events: list[Any], report: Any) -> None:
    adapter = HARNESSES[name]
    log = b"\n".join(json.dumps(event).encode() for event in events)
    paths = adapter.launch(CONTEXT).report_paths
    found = adapter.self_report(dict.fromkeys(paths, json.dumps(report).encode()), log)
    assert all(count is None or count >= 0 for count in (found.tokens_in, found.tokens_out, found.turns))
