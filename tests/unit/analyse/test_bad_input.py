"""What strangers' files hold: each is one clear error, or the value that the table of edge cases gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.analyse import analyse_bytes
from controller.analyse.dataset import parse_dataset
from controller.analyse.plan import plan_of_rows
from controller.cli.__main__ import main
from controller.domain.dataset import LogicalRunRow
from controller.errors import InvalidInput
from tests.world.rounds import attempt, jsonl, realistic, run

GOOD = jsonl(realistic(["t1", "t2"], ["a", "b"]))
LINES = [json.loads(line) for line in GOOD.splitlines()]


def dump(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def one_attempt(**changes: Any) -> bytes:
    """One good line with a field of its only attempt replaced."""
    line = json.loads(jsonl([run("t1", "a", 1)]))
    line["attempts"][0].update(changes)
    return dump(line)


def with_id(field: str, first: str, second: str) -> bytes:
    """The good lines with one id spelled in two ways."""
    return dump({**LINES[0], field: first}, {**LINES[1], field: second}, *LINES[2:])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xef\xbb\xbf" + GOOD, "d.jsonl:1: begins with a byte order mark"),
        (GOOD.decode().encode("utf-16"), "d.jsonl:1: begins with a byte order mark"),
        (GOOD.replace(b'"replicate":1', b'"replicate":NaN', 1), "d.jsonl:1: not one JSON object: NaN is no JSON"),
        (GOOD.replace(b'"replicate":1', b'"replicate":-Infinity', 1), "d.jsonl:1: not one JSON object: -Infinity"),
        (GOOD.replace(b'"replicate":1', b'"replicate":1e999', 1), "d.jsonl:1: replicate: Input should be"),
        (dump({**LINES[0], "usd": "NaN"}), "d.jsonl:1: usd: "),
        (one_attempt(usd="-0.05"), "d.jsonl:1: attempts[0].usd: "),
        (one_attempt(turns=-1), "d.jsonl:1: attempts[0].turns: must not be negative"),
        (one_attempt(tool_calls=2**53), "d.jsonl:1: attempts[0].tool_calls: must be below 2**53"),
        (one_attempt(wall_ms=10**100), "d.jsonl:1: attempts[0].wall_ms: must be below 2**53"),
        (one_attempt(tokens={"in": 2**63}), "d.jsonl:1: attempts[0].tokens.in: must be below 2**53"),
        (one_attempt(tokens={"in": -1}), "d.jsonl:1: attempts[0].tokens.in: must not be negative"),
        (GOOD.replace(b'"replicate":1', b'"replicate":' + b"1" * 5_000, 1), "d.jsonl:1: not one JSON object: Exceeds"),
        (b'{"a":' * 3_000 + b"1" + b"}" * 3_000 + b"\n", "d.jsonl:1: not one JSON object: nested too deeply"),
        (b"{1: 2}\n", "d.jsonl:1: not one JSON object"),
        (json.dumps(LINES).encode(), "d.jsonl:1: row: Input should be an object"),
        (dump({**LINES[0], "task": ""}), "d.jsonl:1: task: String should have at least 1 character"),
        (with_id("task", "caf\u00e9", "cafe\u0301"), r"d.jsonl:2: task: 'cafe\u0301' and 'caf\xe9' on line 1"),
        (with_id("arm", "\uff41rm", "arm"), "d.jsonl:2: arm: 'arm' and '\\uff41rm' on line 1"),
        (with_id("model", "m 1", "m  1"), "d.jsonl:2: model: 'm  1' and 'm 1' on line 1"),
        *((dump({**LINES[0], field: "a\u200b"}), f"d.jsonl:1: {field}: holds '\\u200b', which no reader can see")
          for field in ("round_id", "task", "cluster", "stratum", "arm", "model")),
        (one_attempt(attempt_id="a\nb"), "d.jsonl:1: attempts[0].attempt_id: holds '\\n', which no reader can see"),
        (dump({**LINES[0], "task": "x" * 257}), "d.jsonl:1: task: String should have at most 256 characters"),
        (GOOD.replace(b'"arm":"a"', b'"arm":"\\ud800"', 1), "d.jsonl:1: row: Invalid JSON"),
        (dump({**LINES[0], "scored_attempt": 10**400}), "d.jsonl:1: scored_attempt: there is no attempt 10000"),
        (dump({**LINES[0], "replicate": 2**64}), "d.jsonl:1: replicate: must be below 2**53"),
        (one_attempt(wall_ms=60000.0), "d.jsonl:1: attempts[0].wall_ms: Input should be a valid integer"),
        (one_attempt(wall_ms=True), "d.jsonl:1: attempts[0].wall_ms: Input should be a valid integer"),
        (one_attempt(would_have_passed=True), "d.jsonl:1: attempts[0].would_have_passed: only of a patch that passes"),
        *((one_attempt(usd=text), "d.jsonl:1: attempts[0].usd: ") for text in (
            0.05, 5, "5e-2", "00.05", ".05", "0.", "+0.05", "-0", " 0.05", "0.05\n", "5/100", "1e400", "Infinity",
            "0." + "0" * 31, "1" * 14, "\u0660.05")),
        (GOOD + b"\xef\xbb\xbf" + GOOD, "d.jsonl:13: not one JSON object: Unexpected UTF-8 BOM"),
        (GOOD.replace(b"\n", b"\r"), "d.jsonl:1: not one JSON object: Extra data"),
        (one_attempt(reason="x" * 2**20), "d.jsonl:1: longer than 1 MiB"),
        (b"{" + b'"k":1,' * 50_000 + b'"k":1}\n', "d.jsonl:1: key 'k' is given twice"),
    ],
)  # fmt: skip
def test_a_line_that_no_program_should_guess_about_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_dataset(data, name="d.jsonl")
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) <= 51


@pytest.mark.parametrize("line", [b"", b"x", b"{}"])
def test_a_file_of_nothing_but_faults_is_not_read_to_its_end(line: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_dataset((line + b"\n") * 100_000, name="d.jsonl")
    *first, last = str(refused.value).splitlines()
    assert (len(first), first[0].startswith("d.jsonl:1: ")) == (49, True)
    assert last.endswith("more problems than anyone mends; read no further")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (run("t1", "a", 1, outcome="failure"), "outcome: its scored attempt ended normally and was verified"),
        (run("t1", "a", 1, outcome="missing"), "scored_attempt: must be null for a missing run"),
    ],
)
def test_an_outcome_that_its_attempts_contradict_is_refused(row: LogicalRunRow, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_dataset(jsonl([row]))


def test_line_ends_and_key_order_change_nothing() -> None:
    expected = analyse_bytes(GOOD)[1]
    assert analyse_bytes(GOOD.replace(b"\n", b"\r\n"))[1] == expected
    assert analyse_bytes(GOOD.removesuffix(b"\n"))[1] == expected
    assert analyse_bytes(dump(*({key: line[key] for key in reversed(line)} for line in LINES)))[1] == expected


def test_many_ids_predeclare_more_runs_than_anyone_wants_listed() -> None:
    rows = [run(f"t{number}", f"a{number}", 1) for number in range(100)]
    with pytest.raises(InvalidInput) as refused:
        analyse_bytes(jsonl(rows))
    assert "t0.a1.r1 is predeclared but has no row" in str(refused.value)
    assert "9,900 of 10,000 predeclared runs have no row" in str(refused.value)
    with pytest.raises(InvalidInput, match="names 101 arms; at most 100 can be compared"):
        plan_of_rows([run("t1", f"a{number}", 1) for number in range(101)])


def test_one_task_has_estimates_and_no_interval() -> None:
    rows = [run("t1", arm, repeat, success=arm == "a") for arm in "ab" for repeat in (1, 2, 3)]
    found, _ = analyse_bytes(jsonl(rows))
    rates = {arm.arm: (arm.success_rate.value, arm.success_rate.low, arm.success_rate.high) for arm in found.arms}
    assert rates == {"a": ("1", None, None), "b": ("0", None, None)}
    assert found.arms[0].success_rate.k is None
    pair = found.pairs[0]
    assert (pair.success.value, pair.success.low, pair.success.qualified) == ("1", None, False)
    assert "no reliable difference" in found.headline


@pytest.mark.parametrize("outcome", ["missing", "invalid"])
def test_an_arm_without_a_single_known_run_fails_all_and_decides_nothing(outcome: str) -> None:
    rows = [
        run(task, arm, 1) if arm == "a" else run(task, arm, 1, attempts=[], outcome=outcome).model_copy(
            update={"usd": None}
        )
        for task in ("t1", "t2")
        for arm in "ab"
    ]  # fmt: skip
    found, _ = analyse_bytes(jsonl(rows))
    arm = found.arms[1]
    assert (arm.logical_runs, arm.success_rate.value, arm.cost_per_success.value) == (2, "0", None)
    assert (found.pairs[0].success.qualified, found.pairs[0].success.p) == (False, "1")


def test_no_success_costs_infinity_and_a_free_success_costs_nothing() -> None:
    rows = [run(task, arm, 1, success=arm == "a", usd="0") for task in ("t1", "t2") for arm in "ab"]
    found, _ = analyse_bytes(jsonl(rows))
    assert [arm.cost_per_success.value for arm in found.arms] == ["0", "unbounded"]
    unknown = run("t2", "b", 1, outcome="invalid", attempts=[attempt(usd=None)])
    found, _ = analyse_bytes(jsonl([*rows[:3], unknown]))
    assert found.arms[1].cost_per_success.value is None


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(600 * 2**20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (empty, "the dataset has no rows"),
        (large, "larger than 536870912 bytes"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.mkdir(), "named"),
        (lambda path: path.write_bytes(b"\xef\xbb\xbf" + GOOD), "byte order mark"),
        (lambda path: path.write_bytes(b"\0" * 10_000), "named:1: not one JSON object"),
    ],
    ids=["empty", "600 MB", "device", "directory", "byte order mark", "zeros"],
)
def test_the_command_line_says_so_on_one_screen(
    make: Callable[[Path], None], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    make(tmp_path / "named")
    code = main(["analyse", str(tmp_path / "named"), "--protocol", "harness-round", "--json"])
    out, err = capsys.readouterr()
    assert (out, code in (71, 72)) == ("", True), err
    assert message in err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 32
