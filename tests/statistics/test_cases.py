"""Every published case, through the one entry that `fairtrial analyse --cases` uses."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from controller.analyse.cases import run_case, run_cases
from controller.errors import InvalidInput

ASSET = Path(__file__).parents[1] / "assets" / "statistics.json"
CASES: list[dict[str, Any]] = json.loads(ASSET.read_bytes(), parse_float=Decimal)["vectors"]
PROSE = {"abs_tol", "value_unit", "note"}  # how to read the expected values; nothing a program computes


def same(computed: Any, expected: Any, tolerance: float | None = None) -> bool:
    """Equal as exact numbers; a decimal that is not exactly representable within the case's tolerance."""
    if isinstance(expected, dict):
        return computed.keys() >= expected.keys() - PROSE and all(
            same(computed[key], value, tolerance) for key, value in expected.items() if key not in PROSE
        )
    if isinstance(expected, list):
        return len(computed) == len(expected) and all(
            same(*pair, tolerance) for pair in zip(computed, expected, strict=True)
        )
    if isinstance(expected, Decimal) and isinstance(computed, float):
        return abs(computed - float(expected)) <= (tolerance or 1e-15)
    if isinstance(expected, bool) or expected is None or isinstance(computed, bool) or computed is None:
        return computed is expected
    return bool(computed == expected) or (
        isinstance(expected, Decimal) and Fraction(str(computed)) == Fraction(expected)
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    tolerance = case["expected"].get("abs_tol")
    computed = run_case(case)
    assert same(computed, case["expected"], None if tolerance is None else float(tolerance)), computed


def test_all_are_here() -> None:
    assert len(CASES) == 74
    assert run_cases(ASSET.read_bytes()).keys() == {case["id"] for case in CASES}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[", "cases.json"),
        (b'{"vectors": 3}', "list `vectors`"),
        (b'{"vectors": [{"id": "x", "kind": "guess", "input": {}}]}', "x: kind: 'guess'"),
        (b'{"vectors": [{"id": "x", "kind": "wilson", "input": {"n": 3}}]}', "x: input: 'k' is missing"),
        (b'{"vectors": [{"id": "x", "kind": "wilson", "input": {"n": 3, "k": 4}}]}', "4 successes of 3"),
        (b'{"vectors": [{"id": "x", "kind": "holm", "input": []}]}', "must be an object"),
    ],
)
def test_a_malformed_case_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run_cases(data)
