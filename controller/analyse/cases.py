"""Known-answer cases: anyone can bring one and see what this package computes.

A case is an object with `kind` and `input`; the answer has the form of that kind's expected values. Exact results are
"a/b" strings (whole numbers of whole inputs stay numbers), infinity is "unbounded", not applicable is null.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn

from controller.analyse import cases_bootstrap, cases_simple
from controller.domain.json_files import once
from controller.errors import InvalidInput

Case = Mapping[str, Any]

KINDS: Final[Mapping[str, Callable[[Case], dict[str, Any]]]] = {
    "wilson": cases_simple.wilson_case,
    "holm": cases_simple.holm_case,
    "holm_interval": cases_simple.holm_interval_case,
    "nearest_rank": cases_simple.nearest_rank_case,
    "median": cases_simple.median_case,
    "money_and_na": cases_simple.money_case,
    "rng": cases_simple.rng_case,
    "gate_P2": cases_simple.gate_p2_case,
    "gate_P3": cases_simple.gate_p3_case,
    "clustering": cases_simple.clustering_case,
    "exact_bootstrap_difference": cases_bootstrap.difference_case,
    "exact_bootstrap_cost_per_success": cases_bootstrap.cost_per_success_case,
    "exact_bootstrap_cost_ratio": cases_bootstrap.cost_ratio_case,
    "exact_bootstrap_rate": cases_bootstrap.rate_case,
    "exact_bootstrap_quantile": cases_bootstrap.quantile_case,
    "monte_carlo": cases_bootstrap.monte_carlo_case,
    "cluster_minimum": cases_bootstrap.cost_per_success_case,
}


def run_case(case: Case, *, where: str = "") -> dict[str, Any]:
    """What this package computes for one case. Raises InvalidInput naming the case and what it lacks."""
    name = f"{where}{str(case.get('id', 'case'))[:80]}"
    kind = str(case.get("kind"))
    if kind not in KINDS:
        raise InvalidInput(f"{name}: kind: {kind[:80]!r} is not one of {', '.join(sorted(KINDS))}")
    given = case.get("input")
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name}: input: must be an object")
    try:
        return KINDS[kind](given)
    except KeyError as error:
        raise InvalidInput(f"{name}: input: {error.args[0]!r} is missing") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidInput(f"{name}: input: {error}") from error


def run_cases(data: bytes, *, name: str = "cases.json") -> dict[str, dict[str, Any]]:
    """The answers to a file of cases, by case id. Raises InvalidInput naming the file and the case."""
    try:
        document = json.loads(
            data.decode("utf-8"), object_pairs_hook=once, parse_float=Decimal, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name}: {error}") from error
    cases = document.get("vectors") if isinstance(document, dict) else document
    if not isinstance(cases, list) or not all(isinstance(case, dict) and "id" in case for case in cases):
        raise InvalidInput(f"{name}: must hold a list `vectors` of objects with an `id`")
    twice = [case_id for case_id, count in Counter(str(case["id"]) for case in cases).items() if count > 1]
    if twice:
        raise InvalidInput("\n".join(f"{name}: id {case_id[:80]!r} is given twice" for case_id in twice))
    return {str(case["id"]): run_case(case, where=f"{name}: ") for case in cases}


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
