"""The benchmark of the meter on a load of a few requests. It asserts what was done, never how long it took."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import meter_subjects as subjects
from benchmarks.meter import Scale, load_for, measure, offer

TINY = Scale(
    rounds=1,
    first_byte_requests=3,
    cpu_clients=2,
    cpu_requests=2,
    cpu_chunks=5,
    stream_clients=2,
    stream_seconds=3,
)


def test_a_tiny_load_gives_every_row() -> None:
    result: dict[str, Any] = measure(TINY, None)
    assert result["unsettled_requests"] == 0
    assert {"envoy_added_ms", "meter_added_ms"} <= result["first_byte"].keys()
    assert {"envoy_us", "meter_us", "meter_anthropic_us", "meter_openai_responses_us"} <= result["cpu_per_chunk"].keys()
    assert result["streams"]["clients"] == 2
    assert "rss_mib_per_minute" in result["streams"]


def test_a_load_that_is_refused_is_an_error_not_a_figure(tmp_path: Path) -> None:
    with subjects.provider(tmp_path) as provider:
        load = load_for(provider, clients=1, requests=1, chunks=3, interval_us=0)
        assert offer(load).events == 3
        refused = replace(load, path="/v1/none")
        with pytest.raises(RuntimeError, match=r"1 clients failed .*404 Not Found"):
            offer(refused)
