"""`fairtrial card` and `fairtrial price`, as a person meets them: files in, one screen or one document out."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from controller.cli.__main__ import main

PROJECT = Path(__file__).parents[3]
POLICIES = PROJECT / "policies" / "rounds"
EXCERPT = PROJECT / "tests" / "assets" / "prices" / "litellm-1.110.2-excerpt.json"
CASES = PROJECT / "tests" / "assets" / "metering.json"
CARD = POLICIES / "rate-card-rehearsal.json"
ON = ("--on", "2026-11-30")


def screen(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    return (code, *capsys.readouterr())


def written(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def build(capsys: pytest.CaptureFixture[str], out: Path, *more: str, models: str) -> tuple[int, str, str]:
    return screen(capsys, "card", "build", "--models", models, "--second-map", EXCERPT, "--out", out, *ON, *more)


def test_a_card_is_built_where_two_maps_agree_and_its_digest_is_its_sha256(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "card.json"
    single = "anthropic/claude-opus-5-5:standard:standard:geo:us"
    code, text, _ = build(
        capsys, out, "--allow-single-source", single, "--json", models="anthropic/claude-opus-5-5,gemini/gemini-2.5-pro"
    )
    assert code == 0
    built = json.loads(text)
    assert built["digest"] == f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}"
    assert built["single_sources"] == [single]
    assert "gemini/gemini-2.5-pro: google_maps_grounding_cost_per_query" in built["left_out"]
    card = json.loads(out.read_bytes())
    opus, gemini = card["rows"]
    assert opus["bands"][0]["usd_per_million"] == {"in": "4", "out": "20", "read": "0.2", "w1h": "8", "w5m": "5"}
    assert opus["usd_per_unit"] == {"web_search": "0.01"}
    assert [(item["geo"], item["token_multiplier"]) for item in opus["surcharges"]] == [("us", "1.1")]
    assert [band["over"] for band in gemini["bands"]] == [0, 200_000]
    assert "genai-prices" in opus["source"] and EXCERPT.name in opus["source"] and opus["retrieved_on"] == "2026-11-30"
    code, text, _ = screen(capsys, "card", "lint", out, "--exceptions", POLICIES / "rate-card-exceptions.json")
    assert code == 0
    assert built["digest"] in text and "exception used    read-ratio:anthropic/claude-opus-5-5" in text
    assert "exception unused  read-ratio:anthropic/claude-fable-5-1" in text
    assert screen(capsys, "card", "lint", out)[0] == 77


def test_maps_that_disagree_stop_the_build_and_both_values_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "card.json"
    code, text, err = build(
        capsys,
        out,
        "--tier",
        "batch",
        "--tier",
        "standard",
        models="gemini/gemini-3.5-flash-lite,openai/gpt-4.1",
    )
    assert (code, text) == (76, "")
    assert "gemini/gemini-3.5-flash-lite:batch:standard:read: 0.02 in genai-prices 0.2.3, 0.015 in litellm" in err
    assert "openai/gpt-4.1:standard:standard:call:web_search: 0.01 in genai-prices 0.2.3, 0.025 in litellm" in err
    assert "3 disagree" in err
    assert not out.exists()


def test_many_disagreements_are_one_screen_and_a_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = json.loads(EXCERPT.read_text())
    for entry in prices.values():
        for key, value in entry.items():
            if isinstance(value, float) and "cost" in key:
                entry[key] = value * 2
    second = written(tmp_path / "map.json", prices)
    models = "anthropic/claude-opus-5-5,anthropic/claude-haiku-5-5,openai/gpt-6.1-terra,openai/gpt-5.5"
    out = tmp_path / "card.json"
    code, _, err = screen(capsys, "card", "build", "--models", models, "--second-map", second, "--out", out, *ON)
    assert code == 76
    assert "29 disagree" in err and "more lines like these" in err
    assert len(err.splitlines()) < 35
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "models", "code", "fault"),
    [
        ((), "anthropic/claude-opus-5-5", 76, "claude-opus-5-5:standard:standard:geo:us: 1.1 in litellm-1.110.2"),
        (("--allow-single-source", "typo"), "gemini/gemini-2.5-pro", 72, "typo"),
        (("--tier", "express"), "anthropic/claude-opus-5-5", 72, "no map prices it in tier express"),
        ((), "claude-opus-5-5", 72, "'claude-opus-5-5' is not of the form provider/model"),
        ((), "gemini/gemini-2.5-pro,gemini/gemini-2.5-pro", 72, "is named twice"),
        ((), "anthropic/claude-1000", 72, "knows no such model"),
        (("--on", "yesterday"), "gemini/gemini-2.5-pro", 72, "'yesterday' is not a day"),
    ],
)
def test_what_cannot_be_built_is_named_and_nothing_is_written(
    more: tuple[str, ...], models: str, code: int, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = build(capsys, tmp_path / "card.json", *more, models=models)
    assert found == code
    assert fault in err
    assert list(tmp_path.iterdir()) == []


def test_a_draft_is_pinned_to_the_bytes_that_its_digest_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = written(tmp_path / "draft.json", json.dumps(json.loads(CARD.read_text()), indent=2))
    assert "not in canonical form" in screen(capsys, "card", "lint", draft)[1]
    code, text, _ = screen(capsys, "card", "pin", draft, "--out", tmp_path / "card.json", "--json")
    assert code == 0
    assert (tmp_path / "card.json").read_bytes() == CARD.read_bytes()
    assert json.loads(text)["digest"] == f"sha256:{hashlib.sha256(CARD.read_bytes()).hexdigest()}"
    other = written(tmp_path / "other.json", CARD.read_text().replace('"2"', '"3"'))
    assert screen(capsys, "card", "pin", other, "--out", tmp_path / "card.json")[0] == 72


USAGE = {"usage": {"input_tokens": 1_000, "cache_read_input_tokens": 500, "output_tokens": 77}}


def test_a_priced_record_says_which_row_of_which_card_and_what_retail_would_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usage, policy = written(tmp_path / "usage.json", USAGE), POLICIES / "retail-cent-per-run.json"
    code, text, _ = screen(
        capsys, "price", usage, "--card", CARD, "--dialect", "anthropic", "--retail", policy, "--json"
    )
    assert code == 0
    answer = json.loads(text)
    # 1,000 x 2 + 500 x 0.2 + 77 x 10 dollars per million
    assert (answer["usd"], answer["multiplier"], answer["units"]) == ("0.00287", "1", {})
    assert answer["classes"] == {"in": 1_000, "read": 500, "out": 77}
    assert answer["row"] == {
        "provider": "rehearsal",
        "model": "rehearsal-1",
        "tier": "standard",
        "speed": "standard",
        "geo": "global",
        "band_over": 0,
    }
    assert answer["card_digest"] == f"sha256:{hashlib.sha256(CARD.read_bytes()).hexdigest()}"
    assert answer["retail"]["usd"] == "0"
    assert answer["retail"]["policy_digest"].startswith("sha256:")
    code, text, _ = screen(capsys, "price", usage, "--card", CARD, "--dialect", "anthropic", "--retail", policy)
    assert code == 0 and text.startswith("$0.00287\n") and "retail" in text and answer["card_digest"] in text


def test_every_vector_is_answered_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = screen(capsys, "price", "--cases", CASES)
    assert code == 0
    expected = {case["id"]: (case["usd"], case["multiplier"]) for case in json.loads(CASES.read_text())["priced"]}
    assert {answer["id"]: (answer["usd"], answer["multiplier"]) for answer in json.loads(text)} == expected


def changed(**prices: object) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(CARD.read_text())
    card["rows"][0]["bands"][0]["usd_per_million"].update(prices)
    return card


@pytest.mark.parametrize(
    ("usage", "card", "policy", "code", "fault"),
    [
        ({"usage": {"input_tokens": -1, "output_tokens": 1}}, None, None, 98, "usage.input_tokens: -1"),
        ({"usage": {"input_tokens": 1.5, "output_tokens": 1}}, None, None, 98, "usage.input_tokens: 1.5"),
        ({"usage": {"input_tokens": 1.0, "output_tokens": 1}}, None, None, 98, "usage.input_tokens: 1.0"),
        ('{"usage": {"input_tokens": NaN}}', None, None, 72, "usage.json: usage.input_tokens: NaN is not a number"),
        ('{"usage": {"input_tokens": 1e999}}', None, None, 72, "usage.json: usage.input_tokens: 1e999 is beyond"),
        ('{"usage": {"input_tokens": 1, "input_tokens": 2}}', None, None, 72, "usage.input_tokens: the key is given"),
        ("{", None, None, 72, "usage.json: not readable as JSON"),
        (USAGE, changed(read=0.2), None, 72, "card.json: rows[0].bands[0].usd_per_million.read: 0.2 is a float"),
        (USAGE, changed(inn="2"), None, 72, "card.json: rows[0].bands[0].usd_per_million.inn: Input should be"),
        (USAGE, "\x00\xff", None, 72, "card.json: not readable as JSON"),
        (USAGE, None, {"quantum_usd": "0.010"}, 72, "policy.json: quantum_usd: String should match"),
        (USAGE, None, {"quantum_usd": 0.01}, 72, "policy.json: quantum_usd: 0.01 is a float"),
        (USAGE, None, {"discount": "1"}, 72, "policy.json: discount: Extra inputs"),
    ],
)
def test_bad_input_is_refused_by_its_path_on_one_screen(
    usage: object,
    card: object,
    policy: dict[str, Any] | None,
    code: int,
    fault: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments: list[str | Path] = ["--card", written(tmp_path / "card.json", card) if card else CARD]
    if policy:
        terms = json.loads((POLICIES / "retail-cent-per-run.json").read_text()) | policy
        arguments += ["--retail", written(tmp_path / "policy.json", terms)]
    record = written(tmp_path / "usage.json", usage)
    found, out, err = screen(capsys, "price", record, "--dialect", "anthropic", *arguments, "--json")
    assert (found, out) == (code, "")
    assert fault in err
    assert len(err.splitlines()) < 35 and "Traceback" not in err


def test_the_guides_examples_are_files_that_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card, policy = re.findall(r"```json\n(.*?)```", (PROJECT / "docs" / "rate-cards.md").read_text(), re.DOTALL)
    assert screen(capsys, "card", "lint", written(tmp_path / "card.json", card))[0] == 0
    assert json.loads(policy) == json.loads((POLICIES / "retail-cent-per-run.json").read_text())


def test_an_answer_may_hold_floats_that_are_no_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage = written(tmp_path / "usage.json", USAGE | {"temperature": 0.7})
    assert screen(capsys, "price", usage, "--card", CARD, "--dialect", "anthropic")[0] == 0


def test_a_case_file_with_a_float_price_is_refused_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = json.loads(CASES.read_text())
    cases["cards"]["B"]["bands"][1]["per_mtok"]["read"] = 0.1
    code, _, err = screen(capsys, "price", "--cases", written(tmp_path / "cases.json", cases))
    assert code == 72
    assert "cards.B.bands[1].per_mtok.read: a price is a decimal string" in err


@pytest.mark.parametrize(
    ("cases", "fault"),
    [
        ({}, "a case file must hold `cards`, an object, and `priced`, a list"),
        ({"cards": {}}, "`priced`, a list"),
        ({"priced": []}, "`cards`, an object"),
        ({"cards": [], "priced": []}, "`cards`, an object"),
        ({"cards": {}, "priced": "all"}, "`priced`, a list"),
        ({"cards": {}, "priced": {"a": {}}}, "`priced`, a list"),
        ({"cards": {}, "priced": [{}, "b"]}, "priced[1]: must be an object"),
        ({"cards": {"A": {"bands": [{"over": "", "per_mtok": {"in": "1"}}]}}, "priced": []}, "cards.A is malformed"),
        (USAGE, "a case file must hold"),
    ],
)
def test_another_kind_of_file_is_no_case_file(
    cases: object, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = screen(capsys, "price", "--cases", written(tmp_path / "cases.json", cases))
    assert (code, out) == (72, "")
    assert fault in err


def test_a_case_file_goes_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert screen(capsys, "price", "--cases", CASES, "--card", CARD)[0] == 72
