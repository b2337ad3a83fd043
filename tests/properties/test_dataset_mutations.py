"""However a good dataset is damaged, it is refused by name, or analysed over every predeclared run."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse import PlanInputs, analyse_bytes
from controller.errors import FairtrialError
from tests.world.rounds import SEED, jsonl, realistic

GOOD = jsonl(realistic(["t1", "t2"], ["a", "b"], replicates=2))
PLAN = PlanInputs(
    seed=SEED, comparisons=(("a", "b"),), arms=("a", "b"), tasks=("t1", "t2"), replicates=2, resamples=100
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1, 2, 3, 10**6, 2**53 - 1, 2**53, 10**400, 0.5, 1e308, "", "0", "0.05", "-1", "1e3", "NaN", "é",
     "e\u0301", "\ud800", "a\0b", "success", "failure", "missing", "invalid", "timeout", "EUR", "sealed", [], {}, [[]]]
)  # fmt: skip


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every field and element."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inside for found in ((*path, key), *leaves(part, (*path, key)))]


@st.composite
def damaged_rows(draw: st.DrawFn) -> bytes:
    """A few fields replaced, removed or added; rows dropped, doubled or moved."""
    rows = [json.loads(line) for line in GOOD.splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(rows) - 1))
        match draw(st.sampled_from(["field", "field", "field", "remove", "drop", "double", "add"])):
            case "field" | "remove" as what:
                *parents, last = draw(st.sampled_from(leaves(rows[row])))
                holder = rows[row]
                for key in parents:
                    holder = holder[key]
                if what == "remove":
                    del holder[last]
                else:
                    holder[last] = draw(ODD)
            case "drop":
                rows.pop(row)
            case "double":
                rows.append(rows[row])
            case _:
                rows[row] = {**rows[row], draw(st.sampled_from(["latency_ms", "extra", "challenge"])): draw(ODD)}
        if not rows:
            break
    return b"".join(json.dumps(row).encode() + b"\n" for row in draw(st.permutations(rows)))


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    """A stretch of the file replaced by other bytes."""
    start = draw(st.integers(0, len(GOOD)))
    end = min(len(GOOD), start + draw(st.integers(0, 40)))
    return GOOD[:start] + draw(st.binary(max_size=12)) + GOOD[end:]


def refused_or_whole(data: bytes) -> None:
    try:
        found, _ = analyse_bytes(data, PLAN)
    except FairtrialError as refused:
        assert str(refused)
        assert refused.exit_code == 72
        return
    assert [arm.arm for arm in found.arms] == ["a", "b"]
    for arm in found.arms:
        assert arm.logical_runs == arm.success_rate.logical_runs == 4
        assert arm.successes + arm.failures + arm.invalid + arm.missing == 4


@settings(max_examples=250, deadline=None)
@given(damaged_rows())
def test_damaged_fields_and_rows(data: bytes) -> None:
    refused_or_whole(data)


@settings(max_examples=150, deadline=None)
@given(damaged_bytes())
def test_damaged_bytes(data: bytes) -> None:
    refused_or_whole(data)
