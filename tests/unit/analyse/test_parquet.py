"""The Parquet tables hold what the lines hold, to the last digit, and are read back by the library that others use."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet  # type: ignore[import-untyped]

from controller.analyse.parquet import parquet_tables
from controller.cli.__main__ import main
from controller.domain.dataset import Charge, LogicalRunRow, Proofs
from tests.world.rounds import SEED, attempt, jsonl, realistic, run


def read_back(tables: dict[str, bytes]) -> list[LogicalRunRow]:
    """The rows again, from nothing but the two files."""
    runs, attempts = (
        parquet.read_table(io.BytesIO(tables[name])).to_pylist() for name in ("runs.parquet", "attempts.parquet")
    )
    assert [row["line"] for row in runs] == list(range(1, len(runs) + 1))
    own = {line: [one for one in attempts if one["line"] == line] for line in {one["line"] for one in attempts}}
    return [LogicalRunRow.model_validate_json(json.dumps(_line(row, own.get(row["line"], [])))) for row in runs]


def _line(row: dict[str, Any], attempts: list[dict[str, Any]]) -> dict[str, Any]:
    for one in attempts:
        assert {key: one.pop(key) for key in ("task", "arm", "replicate")} == {
            key: row[key] for key in ("task", "arm", "replicate")
        }
        del one["line"]
        one["tokens"] = dict(one["tokens"])
    return {**{key: value for key, value in row.items() if key != "line"}, "attempts": attempts}


def test_a_realistic_dataset_round_trips() -> None:
    rows = realistic([f"t{number}" for number in range(12)], ["a", "b"])
    back = read_back(parquet_tables(rows))
    assert back == rows
    assert jsonl(back) == jsonl(rows)


def test_version_2_round_trips() -> None:
    charges = (
        Charge(id="c1", kind="tool", amount="0.10", currency="EUR"),
        Charge(id="c2", kind="human_verification", amount=None, currency="EUR"),
    )
    full = run("t1", "a", 1).model_copy(
        update={
            "schema_version": "fairtrial.dataset/2",
            "currency": "EUR",
            "latency_ms": 2**53 - 1,
            "charges": charges,
            "proofs": Proofs(observed_model=True, receipt=None),
            "challenge": "crash",
        }
    )
    rows = [full, run("t1", "b", 1, attempts=[], outcome="missing").model_copy(update={"usd": None})]
    assert read_back(parquet_tables(rows)) == rows


money = st.from_regex(r"\A(0|[1-9][0-9]{0,12})(\.[0-9]{1,30})?\Z")


@settings(max_examples=60, deadline=None)
@given(money, money, st.integers(0, 2**53 - 1), st.one_of(st.none(), st.integers(0, 2**53 - 1)))
def test_no_digit_of_money_or_counts_is_lost(usd: str, reported: str, tokens: int, turns: int | None) -> None:
    tried = attempt(usd=usd, turns=turns).model_copy(
        update={"self_reported_usd": reported, "tokens": {"out": tokens, "in": 0}, "reason": "λ\n\0"}
    )
    rows = [run("t1", "a", 1, attempts=[tried]).model_copy(update={"usd": usd})]
    back = read_back(parquet_tables(rows))
    assert back == rows
    assert list(back[0].attempts[0].tokens) == ["out", "in"]


def test_the_verb_writes_both_tables_and_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = realistic(["t1", "t2"], ["a", "b"])
    (tmp_path / "data.jsonl").write_bytes(jsonl(rows))
    arguments = ["analyse", str(tmp_path / "data.jsonl"), "--protocol", "harness-round", "--seed", SEED, "--json"]
    arguments += ["--parquet", str(tmp_path / "tables")]
    assert main(arguments) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out)["resampling"]["seed"] == SEED
    written = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    assert read_back(written) == rows
    assert main(arguments) == 72
    assert "nothing was overwritten" in capsys.readouterr().err
    assert main(["analyse", "--plan", "--tasks", "9", "--parquet", str(tmp_path / "x")]) == 72
