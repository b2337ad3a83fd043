"""However a good dataset is damaged, it is refused by name, or analysed over every predeclared run."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse import PlanInputs, analyse_bytes
from controller.analyse.cost_index import analyse_cost_index
from controller.analyse.dataset import parse_dataset
from controller.domain.dataset import AttemptRow, LogicalRunRow
from controller.domain.money import sum_usd, usd_from_text
from controller.domain.outcome import EndKind
from controller.errors import FairtrialError
from controller.evidence.canonical import canonical
from tests.world.rounds import SEED, jsonl, realistic, run

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


COUNTS = st.sampled_from([0, 1, 7, 1_800_000, 2**53 - 1])
ENDS = st.sampled_from(list(EndKind))
MONEY = st.sampled_from(["0", "0.05", "9" * 13 + "." + "9" * 30, "0." + "0" * 29 + "1", None])


@st.composite
def sound_attempt(draw: st.DrawFn, number: int) -> AttemptRow:
    end, verified = draw(ENDS), draw(st.sampled_from([None, True, False]))
    return AttemptRow(
        attempt_id=f"att-{number}",
        number=number,
        end=end,
        reason=draw(st.sampled_from(["", "\u202e\0"])),
        wall_ms=draw(COUNTS.filter(lambda count: count < 2**53 - 1)),
        usd=draw(MONEY),
        requests=draw(COUNTS),
        turns=draw(st.none() | COUNTS),
        tool_calls=draw(st.none() | COUNTS),
        tokens=draw(st.dictionaries(st.sampled_from(["in", "read", "out", "unheard-of"]), COUNTS)),
        self_reported_usd=draw(MONEY),
        verified=verified,
        would_have_passed=end is not EndKind.NORMAL and verified is not False and draw(st.booleans()),
    )


@st.composite
def sound_run(draw: st.DrawFn, task: str, arm: str, replicate: int) -> LogicalRunRow:
    """Anything that one row may say: extremes of cost and time, unknowns, and every outcome that its attempts allow."""
    tried = [draw(sound_attempt(number)) for number in range(1, draw(st.integers(0, 3)) + 1)]
    try:
        cost = sum_usd(one.usd for one in tried)
        usd_from_text(cost or "0")
    except ValueError:  # more dollars than a row can say
        tried = [one.model_copy(update={"usd": None}) for one in tried]
        cost = None
    sound = bool(tried) and tried[-1].end is EndKind.NORMAL and tried[-1].verified is True
    outcomes = (
        ["missing", "invalid"] + (["success"] if sound and cost else []) + (["failure"] if tried and not sound else [])
    )
    outcome = draw(st.sampled_from(outcomes))
    row = run(task, arm, replicate, attempts=tried, outcome=outcome)
    return row.model_copy(update={"scored_attempt": None}) if outcome == "missing" else row


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_sound_dataset_is_analysed_whole(data: st.DataObject) -> None:
    """Whatever sound rows say, harness-round and cost-index analyse all of them, in canonical bytes."""
    cells = [(task, arm, replicate) for task in ("t1", "t2") for arm in ("a", "b") for replicate in (1, 2)]
    rows = [data.draw(sound_run(*cell)) for cell in cells]
    parsed = parse_dataset(jsonl(rows))
    assert list(parsed) == rows
    found, _ = analyse_bytes(jsonl(rows), PLAN)
    for arm in found.arms:
        own = [row.outcome for row in rows if row.arm == arm.arm]
        assert arm.logical_runs == 4
        counted = (arm.successes, arm.failures, arm.invalid, arm.missing)
        assert counted == tuple(own.count(kind) for kind in ("success", "failure", "invalid", "missing"))
    index = analyse_cost_index(rows, seed=SEED, resamples=100)
    assert canonical(index)
    assert sum(cell.successes + cell.failures + cell.unknown for cell in index.cells) == len(rows)
