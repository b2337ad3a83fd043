"""Cases that nobody should bring: each is refused by name, in no time and without a defect."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.analyse.cases import run_case, run_cases
from controller.errors import InvalidInput
from tests.statistics.test_cases import CASES

SMALL = [case for case in CASES if case["kind"] not in ("monte_carlo", "rng")]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1, 2, 3.7, 2**53, 2**63, 2**64, 10**400, 10**4_000, float("nan"), float("inf"), 1e308, "", "0",
     "-0", "1/0", "1/3", "1e400", "1e999999999", "1e-999999999", "NaN", "Infinity", "unbounded", "-unbounded", "0x10",
     "1_000", "\u0663", "\ud800", [], [1], [[1]], {}, {"a": 1}]
)  # fmt: skip


def a_case(kind: str, **given: Any) -> dict[str, Any]:
    return {"id": "x", "kind": kind, "input": given}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (a_case("wilson", k=3.7, n=10), "k: '3.7' is not a whole number"),
        (a_case("wilson", k=True, n=10), "'True' is not a number"),
        (a_case("wilson", k=1, n=2**53), "n: '9007199254740992' is not a whole number from 0 to"),
        (a_case("wilson", k=1, n=2, z="NaN"), "'NaN' is not a number"),
        (a_case("wilson", k=1, n=2, z=-1), "z: must be above 0"),
        (a_case("holm", p=["1/2", 1.5]), "p: '1.5' is not from 0 to 1"),
        (a_case("holm", p=["0.01"], alpha=1), "alpha: must lie between 0 and 1"),
        (a_case("holm", p=[]), "p: must be a list of at least 1"),
        (a_case("holm_interval", B=999, c=[1_000]), "c: '1000' is not a whole number from 0 to 999"),
        (a_case("holm_interval", B=10**12, c=[1]), "B: '1000000000000' is not a whole number from 1 to"),
        (a_case("nearest_rank", values=[1, 2], q=["2"]), "q: '2' is not from 0 to 1"),
        (a_case("nearest_rank", values="12", q=["1/2"]), "a range must read 1..n"),
        (a_case("money_and_na", spends=["0.1", "1e999999999"]), "is not a number of a sensible size"),
        (a_case("money_and_na", spend="-1", successes=1), "spend: must not be negative"),
        (a_case("money_and_na", spend="1/0", successes=1), "'1/0' is not a number"),
        (a_case("money_and_na", spends=["1"], outcomes=["false"]), "outcomes: each must be true, false or null"),
        (a_case("money_and_na", price_per_1M="1/3", tokens=1), "has no finite decimal form"),
        (a_case("rng", label=5, B=10, T=[3]), "label: must be ASCII text"),
        (a_case("rng", label="x", B=10**6, T=[100]), "1,000,000 resamples of 100 draws are more than"),
        (a_case("rng", words=[2**64], T=3), "words: '18446744073709551616'"),
        (a_case("gate_P2", adaptive=31, frontier=1, n=30, cost_adaptive=1, cost_frontier=1), "adaptive: '31'"),
        (a_case("gate_P2", adaptive=0, frontier=0, n=0, cost_adaptive=1, cost_frontier=1), "n: '0'"),
        (a_case("clustering", successes_of_3=[4]), "successes_of_3: '4'"),
        (a_case("exact_bootstrap_difference", discordant_for_A=3, discordant_for_B=2, T=4), "discordant_for_B: '2'"),
        (a_case("exact_bootstrap_difference", discordant_for_A=1, discordant_for_B=0, T=10**6), "T: '1000000'"),
        (a_case("exact_bootstrap_difference", successes_A=[1] * 401, successes_B=[0] * 401), "401 tasks"),
        (a_case("exact_bootstrap_difference", successes_A=[1], successes_B=[0, 0]), "shorter|longer"),
        (a_case("exact_bootstrap_cost_per_success", spend_micro=[1] * 10, successes=[1] * 10), "10 clusters"),
        (a_case("exact_bootstrap_rate", successes=[2], attempts=[1]), "no more successes than attempts"),
        (a_case("exact_bootstrap_quantile", times_by_task=[[1], []], q="1/2"), "each task has a list of times"),
        (a_case("monte_carlo", label="é", B=10, spend_micro=[1], successes=[1]), "label: must be ASCII text"),
    ],
)  # fmt: skip
def test_a_number_that_makes_no_sense_there_is_named(case: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run_case(case)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"id": "x"}, {"id": "x"}]', "cases.json: id 'x' is given twice"),
        (b'[{"id": "x", "id": "y"}]', "cases.json: key 'id' is given twice"),
        (b'[{"id": "x", "kind": "holm", "input": {"p": [NaN]}}]', "cases.json: NaN is no JSON number"),
        (b"\xef\xbb\xbf[]", "cases.json: Unexpected UTF-8 BOM"),
        ("[]".encode("utf-16"), "cases.json: 'utf-8' codec can't decode"),
        (b'[{"id": "x", "kind": "holm", "input": {}}]', "cases.json: x: input: 'p' is missing"),
        (b"[" * 100_000, "cases.json: "),
    ],
)
def test_a_file_that_two_readers_could_read_in_two_ways_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        run_cases(data)
    assert str(refused.value).startswith(message)


def test_a_small_spend_is_not_rounded_away() -> None:
    assert run_case(a_case("money_and_na", spends=["1e-7", "2e-7"])) == {"total": "0.0000003"}
    assert run_case(a_case("money_and_na", spends=["0.10", "0.20"])) == {"total": "0.30"}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inside for found in ((*path, key), *leaves(part, (*path, key)))]


@settings(max_examples=400, deadline=5_000)
@given(st.sampled_from(SMALL), st.data())
def test_any_field_of_a_case_may_be_anything(case: dict[str, Any], data: st.DataObject) -> None:
    """Refused by name, or answered in JSON that every reader takes."""
    damaged = copy.deepcopy(case)
    for _ in range(data.draw(st.integers(1, 2))):
        *parents, last = data.draw(st.sampled_from(leaves(damaged["input"])))
        holder = damaged["input"]
        for key in parents:
            holder = holder[key]
        holder[last] = copy.deepcopy(data.draw(ODD))
        if not leaves(damaged["input"]):
            break
    try:
        answer = run_case(damaged)
    except InvalidInput as refused:
        assert str(refused).startswith(str(case["id"]))
        return
    json.dumps(answer, allow_nan=False)
