"""Cases without resampling: intervals, tests, ranks, money, gates and the generator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np

from controller.analyse.holm import ALPHA, HolmInterval, holm_intervals, p_value, step_down, tail_rank
from controller.analyse.percentile import HIGH, LOW
from controller.analyse.philox import philox_block
from controller.analyse.quantile import at_rank, median, nearest_rank
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import matrix, matrix_digest, scaled, words
from controller.analyse.wilson import Z_95, wilson
from controller.domain.exact import UNBOUNDED, Exact, decimal_text, exact_text
from controller.protocols.cost_index.rules import cost_per_outcome, total_spend
from controller.protocols.harness_round.decision import above_margin, at_least_lower
from controller.protocols.optimizer_matrix.gates import funded_gate

Input = Mapping[str, Any]


def exact(value: Any) -> Fraction:
    """A number of a case as the decimal or fraction it is written as."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number")
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def extended(value: Any) -> Exact:
    """The same, or infinity for "unbounded"."""
    return UNBOUNDED if value == "unbounded" else exact(value)


def plain(value: Exact | None, like: Sequence[Any] = ()) -> Any:
    """A whole number as a number when the inputs were numbers, else the exact string; null stays null."""
    numbers = like and all(not isinstance(one, str) or one == "unbounded" for one in like)
    if isinstance(value, Fraction) and numbers:
        if value.denominator == 1:
            return value.numerator
        if any(isinstance(one, float | Decimal) for one in like):
            return float(value)
    return exact_text(value)


def wilson_case(given: Input) -> dict[str, Any]:
    found = wilson(int(given["k"]), int(given["n"]), Decimal(str(given.get("z", Z_95))))
    if found is None:
        return {"rate": None, "low": None, "high": None}
    return {"rate": str(found.rate), "low": float(found.low), "high": float(found.high)}


def holm_case(given: Input) -> dict[str, Any]:
    alpha = exact(given.get("alpha", ALPHA))
    steps = step_down([exact(p) for p in given["p"]], alpha)
    return {
        "adjusted": [str(step.adjusted) for step in steps],
        "reject": [step.rejected for step in steps],
        "R": sum(step.rejected for step in steps),
        "levels": [str(step.level) for step in steps],
    }


def holm_interval_case(given: Input) -> dict[str, Any]:
    if "A_minus_B" in given:
        return _antisymmetry(given["A_minus_B"])
    resamples, tails = int(given["B"]), [int(count) for count in given["c"]]
    alpha = exact(given.get("alpha", ALPHA))
    if "m" in given:
        levels = {count: p_value(resamples, count, resamples) for count in tails}
        return {
            str(count): {"p": str(p), "rejects_first_step": p * int(given["m"]) <= alpha} for count, p in levels.items()
        }
    ranks = np.arange(1, resamples + 1, dtype=np.int64)
    family = [WholeReplicates(ranks - count, Fraction(1, resamples + 1)) for count in tails]
    found = holm_intervals(family, resamples=resamples, null=Fraction(0), alpha=alpha)
    return {"R": sum(one.rejected for one in found), "comparisons": [_holm_interval(one) for one in found]}


def _holm_interval(one: HolmInterval) -> dict[str, Any]:
    return {
        "p": str(one.p),
        "adjusted": str(one.adjusted),
        "level": str(one.level),
        "k": one.k,
        "low": exact_text(one.low),
        "high": exact_text(one.high),
        "excludes_0": one.rejected,
    }


def _antisymmetry(values: Sequence[int]) -> dict[str, Any]:
    """Both directions of one difference under the nearest-rank rule and under the symmetric one that decisions use."""
    answers: dict[str, Any] = {}
    apart = []
    for name, direction in (("A_minus_B", list(values)), ("B_minus_A", [-value for value in values])):
        ordered = sorted(exact(value) for value in direction)
        answers[f"nearest_rank_{name}"] = [plain(at_rank(ordered, quantile), values) for quantile in (LOW, HIGH)]
        k = tail_rank(len(ordered), ALPHA)
        low, high = (ordered[k - 1], ordered[len(ordered) - k]) if k else (-UNBOUNDED, UNBOUNDED)
        answers[f"symmetric_{name}"] = [plain(low, values), plain(high, values)]
        apart.append(low > 0 or high < 0)
    answers["decision"] = "separation" if all(apart) else "no separation"
    return answers


def nearest_rank_case(given: Input) -> dict[str, Any]:
    if "B" in given:
        return {quantile: nearest_rank(exact(quantile), int(given["B"])) for quantile in given["q"]}
    if "times" in given:
        return _censored(given)
    if isinstance(given["values"], str):
        return _whole_range(given["values"])
    values = [extended(value) for value in given["values"]]
    return {quantile: plain(at_rank(values, exact(quantile)), given["values"]) for quantile in given["q"]}


def _whole_range(text: str) -> dict[str, Any]:
    """Every whole percentile of 1..n, and where the same in floating point is off by one."""
    matched = re.fullmatch(r"1\.\.(\d{1,6})", text)
    if matched is None:
        raise ValueError("values: a range must read 1..n")
    count = int(matched[1])
    ranks = {percent: nearest_rank(Fraction(percent, 100), count) for percent in range(1, 101)}
    trapped = [percent for percent, rank in ranks.items() if -int(-(percent / 100 * count) // 1) != rank]
    same = all(rank == -(-percent * count // 100) for percent, rank in ranks.items())
    return {"result": "p for every p" if same and count == 100 else list(ranks.values()), "float_trap_at": trapped}


def _censored(given: Input) -> dict[str, Any]:
    times = [exact(time) for time in given["times"]]
    cut = [time for time, censored in zip(times, given["censored"], strict=True) if censored]
    answers = {}
    for quantile in given["q"]:
        value = at_rank(times, exact(quantile))
        at_least = bool(cut) and value is not None and value >= min(cut)
        answers[quantile] = None if value is None else f"{'>=' if at_least else ''}{exact_text(value)}"
    return answers


def median_case(given: Input) -> dict[str, Any]:
    values = [extended(value) for value in given["values"]]
    return {
        "median": plain(median(values), given["values"]),
        "nearest_rank_p50": plain(at_rank(values, Fraction(1, 2)), given["values"]),
    }


def money_case(given: Input) -> dict[str, Any]:
    if "cached" in given:
        total = exact(given["input"])
        return {"rate": str(exact(given["cached"]) / total) if total else None}
    if "verified" in given:
        verified, others = int(given["verified"]), int(given.get("failed", 0))
        started = verified + others + int(given.get("errored", 0)) + int(given.get("unknown", 0))
        dropped = verified + others
        return {
            "rate": str(Fraction(verified, started)) if started else None,
            "wrong_if_errors_dropped": str(Fraction(verified, dropped)) if dropped else None,
        }
    if "price_per_1M" in given:
        total = exact(given["price_per_1M"]) * int(given["tokens"]) / 1_000_000
        nano = total * 1_000_000_000
        return {"total": _finite_decimal(total), "nano": plain(nano, (0,))}
    spends = given["spends"] if "spends" in given else [given["spend"]]
    known = [None if spend is None else exact(spend) for spend in spends]
    if "successes" not in given and "outcomes" not in given:
        return _total(spends, known)
    return _cost_per_success(given, known)


def _total(spends: Sequence[Any], known: Sequence[Fraction | None]) -> dict[str, Any]:
    """The exact sum, with as many decimals as the finest summand."""
    total = total_spend(known)
    if total is None:
        return {"total": None, "qualified": False, "reason": "unknown spend"}
    places = max((len(str(spend).partition(".")[2]) for spend in spends), default=0)
    return {"total": decimal_text(total, places)}


def _cost_per_success(given: Input, known: Sequence[Fraction | None]) -> dict[str, Any]:
    outcomes = given.get("outcomes")
    total = total_spend(known)
    if total is None:
        return {"exact": None, "qualified": False, "reason": "unknown spend"}
    if outcomes is not None and any(outcome is None for outcome in outcomes):
        return {"exact": None, "qualified": False, "reason": "unknown outcome"}
    successes = int(given["successes"]) if outcomes is None else sum(bool(outcome) for outcome in outcomes)
    value = cost_per_outcome(total, successes)
    answer: dict[str, Any] = {"exact": exact_text(value)}
    if isinstance(value, Fraction):
        answer["display_6dp"] = decimal_text(value, 6)
    return answer


def _finite_decimal(value: Fraction) -> str:
    places = next(places for places in range(60) if (value * 10**places).denominator == 1)
    return decimal_text(value, places)


def rng_case(given: Input) -> dict[str, Any]:
    if "words" in given:
        drawn = np.array([int(word) for word in given["words"]], dtype=np.uint64)
        return {"index": [int(index) for index in scaled(drawn, int(given["T"]))]}
    if "ctr" in given:
        counter, key = int(given["ctr"]), int(given["key"])
        blocks = philox_block(counter, key), philox_block(counter + 1, key)
        block, following = ([f"{word:016x}" for word in one] for one in blocks)
        return {"block_ctr0": block, "numpy_first4": following}
    sizes = given["T"] if isinstance(given["T"], list) else [given["T"]]
    stream = given["label"]
    if "B" in given:
        return {
            str(size): matrix_digest(matrix(stream, int(given["B"]), int(size))).removeprefix("sha256:")
            for size in sizes
        }
    replicate, count = int(given.get("row", given.get("b", 0))), int(given.get("n", 4))
    drawn = words(stream, replicate, count)
    answer: dict[str, Any] = {"words": [f"{int(word):016x}" for word in drawn]}
    answer.update({str(size): [int(index) for index in scaled(drawn, int(size))] for size in sizes})
    return answer


def gate_p2_case(given: Input) -> dict[str, Any]:
    costs = [None if given[name] is None else exact(given[name]) for name in ("cost_adaptive", "cost_frontier")]
    gate = funded_gate(
        int(given["adaptive"]),
        int(given["frontier"]),
        int(given["n"]),
        adaptive_cost=costs[0],
        frontier_cost=costs[1],
    )
    return {"abs80": gate.absolute_80, "rel95": gate.relative_95, "cost30": gate.saves_30, "pass": gate.passed}


def gate_p3_case(given: Input) -> dict[str, Any]:
    if "n" in given:
        difference = Fraction(int(given["a"]) - int(given["b"]), int(given["n"]))
        return {"above_minus_3pp": above_margin(difference, 3)}
    lower = at_least_lower(extended(given["a"]), extended(given["b"]), int(given.get("percent", 10)))
    return {"at_least_10pct_lower": lower}


def clustering_case(given: Input) -> dict[str, Any]:
    """Standard errors of a mean rate with whole tasks, and with the repeats wrongly taken as independent."""
    repeats = int(given.get("repeats", 3))
    rates = [Fraction(int(hits), repeats) for hits in given["successes_of_3"]]
    count = len(rates)
    rate = sum(rates, Fraction(0)) / count
    spread = sum(((one - rate) ** 2 for one in rates), Fraction(0))
    variance = spread / (count - 1) / count if count > 1 else None
    naive = rate * (1 - rate) / (count * repeats)
    pooled = wilson(int(rate * count * repeats), count * repeats)
    return {
        "rate": str(rate),
        "clustered_se": None if variance is None else _root(variance),
        "naive_se": sqrt(naive),
        "wrong_wilson_15_30": None if pooled is None else [float(pooled.low), float(pooled.high)],
    }


def _root(value: Fraction) -> str | float:
    """The square root, exact when it is rational."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return str(Fraction(top, bottom))
    return sqrt(value)
