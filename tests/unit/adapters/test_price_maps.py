"""The two public price maps: what is read of them, exactly, and what is refused."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from controller.adapters import prices_genai
from controller.adapters.prices_second_map import SecondMap
from controller.domain.price_map import PricePoint, Wanted
from controller.errors import InvalidInput

EXCERPT = Path(__file__).parents[2] / "assets" / "prices" / "litellm-1.110.2-excerpt.json"
DAY = date(2026, 11, 30)


def prices(listing_of: Wanted, source: str) -> dict[str, str]:
    """What one map says, by `class` or `class:over`."""
    found = prices_genai.listing(listing_of, DAY) if source == "genai" else SecondMap(EXCERPT).listing(listing_of)
    return {
        f"{point.name}:{point.over}" if point.over else point.name: str(price) for point, price in found.prices.items()
    }


# From the providers' pages, as research/metering.md gives them: USD per million tokens, and per call.
OPUS = {"in": "4", "out": "20", "read": "1/5", "w5m": "5", "w1h": "8", "call:web_search": "1/100"}


def test_both_maps_give_the_published_prices() -> None:
    opus = Wanted("anthropic", "claude-opus-5-5")
    assert prices(opus, "genai") == OPUS
    assert prices(opus, "second") == OPUS | {"geo:us": "11/10"}


def test_a_price_above_a_threshold_is_a_band_of_its_own() -> None:
    haiku = Wanted("anthropic", "claude-haiku-5-5")
    expected = {"in": "1/10", "in:100000": "1/2", "out": "1/2", "out:100000": "5/2", "w1h:100000": "1"}
    for source in ("genai", "second"):
        found = prices(haiku, source)
        assert {name: found[name] for name in expected} == expected


def test_tiers_and_speeds_have_their_own_prices() -> None:
    flex = Wanted("openai", "gpt-5.4", tier="flex")
    fast = Wanted("anthropic", "claude-opus-5-5", speed="fast")
    for source in ("genai", "second"):
        assert prices(flex, source)["read"] == "13/100"  # published, and not half of 0.25
        assert (prices(fast, source)["in"], prices(fast, source)["out"]) == ("8", "40")


def test_a_tier_that_a_map_does_not_know_is_not_taken_for_standard() -> None:
    for tier in ("flex", "express"):
        unknown = Wanted("anthropic", "claude-opus-5-5", tier=tier)
        assert prices(unknown, "genai") == {} and prices(unknown, "second") == {}


def test_a_write_of_twelve_hours_is_in_the_second_map_only() -> None:
    terra = Wanted("openai", "gpt-6.1-terra")
    assert prices(terra, "second")["w12h"] == "5/2"
    assert "w12h" not in prices(terra, "genai")


def test_a_model_or_provider_that_the_package_does_not_know_is_named() -> None:
    for provider, model in (("anthropic", "gpt-1000"), ("acme", "m")):
        with pytest.raises(InvalidInput, match=f"{model}|{provider}"):
            prices_genai.listing(Wanted(provider, model), DAY)


def second(tmp_path: Path, text: str) -> SecondMap:
    path = tmp_path / "map.json"
    path.write_text(text)
    return SecondMap(path)


def test_a_float_is_taken_from_its_text_and_not_from_its_bits(tmp_path: Path) -> None:
    text = '{"m": {"litellm_provider": "openai", "input_cost_per_token": 1.1e-07, "output_cost_per_token": 3e-7}}'
    found = second(tmp_path, text).listing(Wanted("openai", "m")).prices
    assert list(found.values()) == [Fraction("0.11"), Fraction("0.3")]
    assert Fraction(1.1e-07) * 10**6 != Fraction("0.11")


@pytest.mark.parametrize("number", ["NaN", "-1e-6", '"1e-6"', "null", "1e-400", "1e400", "true", "[]"])
def test_what_is_no_price_is_refused_by_its_field(number: str, tmp_path: Path) -> None:
    text = f'{{"m": {{"litellm_provider": "openai", "input_cost_per_token": {number}}}}}'
    with pytest.raises(InvalidInput, match=r"map\.json: m\.input_cost_per_token: "):
        second(tmp_path, text).listing(Wanted("openai", "m"))


@pytest.mark.parametrize("text", ["", "[]", '{"m": 1, "m": 2}', '{"m": ' + "9" * 60 + "}", "[" * 100_000])
def test_what_is_no_map_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"map\.json: "):
        second(tmp_path, text)


def test_another_providers_model_of_that_name_is_not_taken(tmp_path: Path) -> None:
    text = json.dumps({"m": {"litellm_provider": "azure", "input_cost_per_token": 1}})
    assert second(tmp_path, text).listing(Wanted("openai", "m")).prices == {}


def test_a_price_without_a_class_is_left_out_by_name(tmp_path: Path) -> None:
    text = (
        '{"m": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "google_maps_grounding_cost_per_query": 1}}'
    )
    found = second(tmp_path, text).listing(Wanted("openai", "m"))
    assert found.left_out == ("openai/m: google_maps_grounding_cost_per_query",)


def test_a_point_is_named_in_full() -> None:
    wanted = Wanted("openai", "m", tier="flex")
    assert str(PricePoint(wanted, 0, "in")) == "openai/m:flex:standard:in"
    assert str(PricePoint(wanted, 272_000, "read")) == "openai/m:flex:standard:read:272000"
