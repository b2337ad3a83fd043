"""The retail simulation: when to round, which way, and that it never touches the exact cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from controller.domain.retail import RetailPolicy, retail_usd
from controller.errors import UnpricedUsage

# Vector V31 of tests/assets/metering.json.
USDS = tuple(Fraction(text) for text in ("0.0012345", "0.0012355", "0.0000004"))
TERMS: dict[str, Any] = {
    "name": "test",
    "source": "invented",
    "quantum_usd": "0.000001",
    "rounding": "half_up",
    "rounded_per": "request",
}


def policy(**changes: str) -> RetailPolicy:
    return RetailPolicy.model_validate({**TERMS, **changes})


@pytest.mark.parametrize(
    ("rounding", "per", "usd"),
    [
        ("half_up", "request", "0.002471"),
        ("half_up", "run", "0.002470"),
        ("half_even", "request", "0.002470"),
        ("half_even", "run", "0.002470"),
        ("ceiling", "request", "0.002472"),
        ("ceiling", "run", "0.002471"),
        ("floor", "request", "0.002469"),
        ("floor", "run", "0.002470"),
    ],
)
def test_the_mode_and_the_moment_of_rounding_are_the_policys(rounding: str, per: str, usd: str) -> None:
    assert retail_usd(USDS, policy(rounding=rounding, rounded_per=per)) == Fraction(usd)


def test_a_markup_comes_before_the_rounding() -> None:
    # 0.0012345 * 1.2 = 0.0014814; rounded first it would be 0.001235 * 1.2 = 0.001482.
    assert retail_usd(USDS[:1], policy(markup_percent="20")) == Fraction("0.001481")


def test_no_request_costs_nothing() -> None:
    assert retail_usd((), policy()) == 0


def test_a_cost_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="below zero"):
        retail_usd((Fraction(-1),), policy())


def test_a_figure_that_no_record_can_hold_is_refused() -> None:
    assert retail_usd((Fraction(10**13 - 1),), policy()) == 10**13 - 1
    with pytest.raises(UnpricedUsage, match="no record can hold"):
        retail_usd((Fraction(10**13 - 1),), policy(markup_percent="1"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("quantum_usd", "0"),
        ("quantum_usd", "-0.01"),
        ("quantum_usd", "0.010"),
        ("quantum_usd", "1e-6"),
        ("quantum_usd", 0.01),
        ("quantum_usd", "NaN"),
        ("quantum_usd", "1" * 400),
        ("markup_percent", "-5"),
        ("markup_percent", 5),
        ("rounding", "up"),
        ("rounded_per", "month"),
        ("discount", "1"),
    ],
)
def test_a_policy_that_is_not_exact_is_refused_by_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        RetailPolicy.model_validate({**TERMS, field: value})
    assert caught.value.errors()[0]["loc"] == (field,)


@given(
    picos=st.lists(st.integers(0, 10**13), max_size=6),
    quantum=st.sampled_from(["0.000001", "0.01", "0.25", "3"]),
    rounding=st.sampled_from(["half_up", "half_even"]),
    per=st.sampled_from(["request", "run"]),
)
def test_a_retail_figure_is_whole_quanta_and_near_the_cost(
    picos: list[int], quantum: str, rounding: str, per: str
) -> None:
    usds = [Fraction(pico, 10**12) for pico in picos]
    retail = retail_usd(usds, policy(quantum_usd=quantum, rounding=rounding, rounded_per=per))
    assert (retail / Fraction(quantum)).denominator == 1
    roundings = len(usds) if per == "request" else 1
    assert abs(retail - sum(usds, Fraction(0))) <= roundings * Fraction(quantum) / 2
