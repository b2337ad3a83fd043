"""Cases without resampling: intervals, tests, ranks, money, gates and the generator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, Final

import numpy as np

from controller.analyse.case_values import (
    RESAMPLES_MAX,
    Input,
    amount,
    counts,
    exact,
    extended,
    label_of,
    level_of,
    listed,
    resamples_of,
    share,
    whole,
)
from controller.analyse.holm import ALPHA, HolmInterval, holm_intervals, p_value, step_down, tail_rank
from controller.analyse.percentile import HIGH, LOW
from controller.analyse.philox import philox_block
from controller.analyse.quantile import at_rank, median, nearest_rank
from controller.analyse.replicates import WholeReplicates
from controller.analyse.resample import TASKS_MAX, matrix, matrix_digest, scaled, words
from controller.analyse.wilson import Z_95, wilson
from controller.domain.exact import UNBOUNDED, Exact, decimal_text, exact_text
from controller.domain.money import usd_to_text
from controller.evidence.canonical import INTEGER_MAX
from controller.protocols.cost_index.rules import cost_per_outcome, total_spend
from controller.protocols.harness_round.decision import above_margin, at_least_lower
from controller.protocols.optimizer_matrix.gates import funded_gate

_Z_MAX: Final = 100  # beyond any level that anyone asks
_WORDS_MAX: Final = 100_000  # of one row


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
    z = exact(given.get("z", Z_95))
    if not 0 < z <= _Z_MAX:
        raise ValueError(f"z: must be above 0 and at most {_Z_MAX}")
    deviate = Decimal(z.numerator) / Decimal(z.denominator)
    found = wilson(whole(given["k"], "k"), whole(given["n"], "n", most=INTEGER_MAX), deviate)
    if found is None:
        return {"rate": None, "low": None, "high": None}
    return {"rate": str(found.rate), "low": float(found.low), "high": float(found.high)}


def holm_case(given: Input) -> dict[str, Any]:
    steps = step_down([share(p, "p") for p in listed(given, "p", least=1)], level_of(given))
    return {
        "adjusted": [str(step.adjusted) for step in steps],
        "reject": [step.rejected for step in steps],
        "R": sum(step.rejected for step in steps),
        "levels": [str(step.level) for step in steps],
    }


def holm_interval_case(given: Input) -> dict[str, Any]:
    if "A_minus_B" in given:
        return _antisymmetry(listed(given, "A_minus_B", least=1))
    resamples = resamples_of(given, each=len(listed(given, "c", least=1)))
    tails = counts(given, "c", most=resamples)
    alpha = level_of(given)
    if "m" in given:
        pairs = whole(given["m"], "m", least=1)
        levels = {count: p_value(resamples, count, resamples) for count in tails}
        return {str(count): {"p": str(p), "rejects_first_step": p * pairs <= alpha} for count, p in levels.items()}
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


def _antisymmetry(values: Sequence[Any]) -> dict[str, Any]:
    """Both directions of one difference under the nearest-rank rule and under the symmetric one that decisions use."""
    answers: dict[str, Any] = {}
    apart = []
    known = [exact(value) for value in values]
    for name, direction in (("A_minus_B", known), ("B_minus_A", [-value for value in known])):
        ordered = sorted(direction)
        answers[f"nearest_rank_{name}"] = [plain(at_rank(ordered, quantile), values) for quantile in (LOW, HIGH)]
        k = tail_rank(len(ordered), ALPHA)
        low, high = (ordered[k - 1], ordered[len(ordered) - k]) if k else (-UNBOUNDED, UNBOUNDED)
        answers[f"symmetric_{name}"] = [plain(low, values), plain(high, values)]
        apart.append(low > 0 or high < 0)
    answers["decision"] = "separation" if all(apart) else "no separation"
    return answers


def nearest_rank_case(given: Input) -> dict[str, Any]:
    if "B" in given:
        count = whole(given["B"], "B", least=1)
        return {str(q): nearest_rank(share(q, "q"), count) for q in listed(given, "q")}
    if "times" in given:
        return _censored(given)
    if isinstance(given["values"], str):
        return _whole_range(given["values"])
    values = [extended(value) for value in listed(given, "values")]
    return {str(q): plain(at_rank(values, share(q, "q")), given["values"]) for q in listed(given, "q")}


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
    times, censored = [exact(time) for time in listed(given, "times")], _flags(given, "censored")
    cut = [time for time, is_cut in zip(times, censored, strict=True) if is_cut]
    answers = {}
    for quantile in listed(given, "q"):
        value = at_rank(times, share(quantile, "q"))
        at_least = bool(cut) and value is not None and value >= min(cut)
        answers[str(quantile)] = None if value is None else f"{'>=' if at_least else ''}{exact_text(value)}"
    return answers


def _flags(given: Input, name: str) -> list[bool | None]:
    found = listed(given, name)
    if not all(flag is None or isinstance(flag, bool) for flag in found):
        raise ValueError(f"{name}: each must be true, false or null")
    return found


def median_case(given: Input) -> dict[str, Any]:
    values = [extended(value) for value in listed(given, "values")]
    return {
        "median": plain(median(values), given["values"]),
        "nearest_rank_p50": plain(at_rank(values, Fraction(1, 2)), given["values"]),
    }


def money_case(given: Input) -> dict[str, Any]:
    if "cached" in given:
        total = whole(given["input"], "input")
        cached = whole(given["cached"], "cached", most=total)
        return {"rate": str(Fraction(cached, total)) if total else None}
    if "verified" in given:
        verified, others, *lost = (
            whole(given.get(name, 0), name) for name in ("verified", "failed", "errored", "unknown")
        )
        started = verified + others + sum(lost)
        dropped = verified + others
        return {
            "rate": str(Fraction(verified, started)) if started else None,
            "wrong_if_errors_dropped": str(Fraction(verified, dropped)) if dropped else None,
        }
    if "price_per_1M" in given:
        cost = amount(given["price_per_1M"], "price_per_1M") * whole(given["tokens"], "tokens") / 1_000_000
        return {"total": decimal_text(cost, _places(cost)), "nano": plain(cost * 1_000_000_000, (0,))}
    spends = listed(given, "spends") if "spends" in given else [given["spend"]]
    known = [None if spend is None else amount(spend, "spend") for spend in spends]
    if "successes" not in given and "outcomes" not in given:
        return _total(spends, known)
    return _cost_per_success(given, known)


def _total(spends: Sequence[Any], known: Sequence[Fraction | None]) -> dict[str, Any]:
    """The exact sum, with as many decimals as the finest summand."""
    total = total_spend(known)
    if total is None:
        return {"total": None, "qualified": False, "reason": "unknown spend"}
    written = (len(str(spend).partition(".")[2]) for spend in spends if "e" not in str(spend).lower())
    return {"total": decimal_text(total, max(_places(total), *written, 0))}


def _cost_per_success(given: Input, known: Sequence[Fraction | None]) -> dict[str, Any]:
    outcomes = _flags(given, "outcomes") if "outcomes" in given else None
    total = total_spend(known)
    if total is None:
        return {"exact": None, "qualified": False, "reason": "unknown spend"}
    if outcomes is not None and any(outcome is None for outcome in outcomes):
        return {"exact": None, "qualified": False, "reason": "unknown outcome"}
    successes = whole(given["successes"], "successes") if outcomes is None else sum(map(bool, outcomes))
    value = cost_per_outcome(total, successes)
    answer: dict[str, Any] = {"exact": exact_text(value)}
    if isinstance(value, Fraction):
        answer["display_6dp"] = decimal_text(value, 6)
    return answer


def _places(value: Fraction) -> int:
    """How many decimals the value has. Raises ValueError when they have no end."""
    return len(usd_to_text(value).partition(".")[2])


def rng_case(given: Input) -> dict[str, Any]:
    if "words" in given:
        drawn = np.array(counts(given, "words", most=2**64 - 1), dtype=np.uint64)
        return {"index": [int(index) for index in scaled(drawn, whole(given["T"], "T", least=1, most=TASKS_MAX))]}
    if "ctr" in given:
        counter, key = whole(given["ctr"], "ctr", most=2**256 - 2), whole(given["key"], "key", most=2**128 - 1)
        blocks = philox_block(counter, key), philox_block(counter + 1, key)
        block, following = ([f"{word:016x}" for word in one] for one in blocks)
        return {"block_ctr0": block, "numpy_first4": following}
    asked = given["T"] if isinstance(given["T"], list) else [given["T"]]
    sizes = [whole(size, "T", least=1, most=TASKS_MAX) for size in asked]
    stream = label_of(given)
    if "B" in given:
        resamples = resamples_of(given, each=sum(sizes))
        return {str(size): matrix_digest(matrix(stream, resamples, size)).removeprefix("sha256:") for size in sizes}
    replicate = whole(given.get("row", given.get("b", 0)), "row", most=RESAMPLES_MAX)
    drawn = words(stream, replicate, whole(given.get("n", 4), "n", most=_WORDS_MAX))
    answer: dict[str, Any] = {"words": [f"{int(word):016x}" for word in drawn]}
    answer.update({str(size): [int(index) for index in scaled(drawn, size)] for size in sizes})
    return answer


def gate_p2_case(given: Input) -> dict[str, Any]:
    costs = [None if given[name] is None else amount(given[name], name) for name in ("cost_adaptive", "cost_frontier")]
    cells = whole(given["n"], "n", least=1)
    gate = funded_gate(
        whole(given["adaptive"], "adaptive", most=cells),
        whole(given["frontier"], "frontier", most=cells),
        cells,
        adaptive_cost=costs[0],
        frontier_cost=costs[1],
    )
    return {"abs80": gate.absolute_80, "rel95": gate.relative_95, "cost30": gate.saves_30, "pass": gate.passed}


def gate_p3_case(given: Input) -> dict[str, Any]:
    if "n" in given:
        count = whole(given["n"], "n", least=1)
        difference = Fraction(whole(given["a"], "a", most=count) - whole(given["b"], "b", most=count), count)
        return {"above_minus_3pp": above_margin(difference, 3)}
    percent = whole(given.get("percent", 10), "percent", most=100)
    lower = at_least_lower(extended(given["a"]), extended(given["b"]), percent)
    return {"at_least_10pct_lower": lower}


def clustering_case(given: Input) -> dict[str, Any]:
    """Standard errors of a mean rate with whole tasks, and with the repeats wrongly taken as independent."""
    repeats = whole(given.get("repeats", 3), "repeats", least=1)
    rates = [Fraction(hits, repeats) for hits in counts(given, "successes_of_3", most=repeats)]
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
