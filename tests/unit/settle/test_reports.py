"""Usage reports as the providers document them: read into disjoint classes, or refused with the field's path."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controller.domain.instant import InstantMs
from controller.domain.provider_report import ReportedSpan
from controller.errors import InvalidInput
from controller.settle import ProviderReports, read_reports

ASSETS = Path(__file__).parents[2] / "assets" / "usage-reports"
TEN = InstantMs(int(datetime(2026, 11, 30, 10, tzinfo=UTC).timestamp() * 1000))


def files(*names: str) -> list[tuple[str, bytes]]:
    return [(name, (ASSETS / name).read_bytes()) for name in names]


def minute(number: int) -> InstantMs:
    return InstantMs(TEN + number * 60_000)


def changed(name: str, change: Callable[[Any], object]) -> list[tuple[str, bytes]]:
    """The file with one change, beside the other page of its report if there is one."""
    page = json.loads((ASSETS / name).read_bytes())
    change(page)
    others = files("anthropic-2.json") if name == "anthropic-1.json" else []
    return [(name, json.dumps(page).encode()), *others]


def first_row(page: Any, bucket: int = 1) -> Any:
    return page["data"][bucket]["results"][0]


def test_anthropic_keeps_its_disjoint_classes_and_joins_its_pages() -> None:
    reports = read_reports(files("anthropic-2.json", "anthropic-1.json"))
    found = reports.evidence("anthropic", {"apikey_01RunA"}, dedicated=True)
    by_minute = {line.minute: line for line in found.usage if line.usage.tokens["in"] != 250_000}
    assert by_minute[minute(1)].usage.tokens == {"in": 1500, "read": 200, "w5m": 500, "w1h": 1000, "out": 500}
    assert by_minute[minute(2)].usage.tokens["in"] == 40
    assert len(found.usage) == 3, "two context windows of one minute are two lines, and both count"
    assert found.covered == (ReportedSpan(from_at=TEN, until_at=minute(5)),)
    assert {(line.tier, line.speed, line.geo) for line in found.usage} == {("standard", None, "global")}
    assert len(found.reports) == 2


def test_anthropic_searches_are_units_and_a_place_that_cannot_be_chosen_is_the_usual_one() -> None:
    (line,) = (
        read_reports(files("anthropic-1.json", "anthropic-2.json"))
        .evidence("anthropic", {"apikey_01RunB"}, dedicated=True)
        .usage
    )
    assert line.usage.units == {"web_search": 2}
    assert line.geo == "global"


def test_openai_input_is_taken_apart() -> None:
    (line,) = read_reports(files("openai.json")).evidence("openai", {"key_RunA"}, dedicated=True).usage
    counted = {name: count for name, count in line.usage.tokens.items() if count}
    # 2,600 in: 2,000 of them cached, 300 and 100 written, which leaves 200.
    assert counted == {"in": 200, "read": 2000, "w30m": 300, "w12h": 100, "out": 70}
    assert (line.requests, line.tier, line.minute) == (2, "standard", TEN)


def test_openai_answers_with_fewer_fields_are_understood() -> None:
    (line,) = read_reports(files("openai-older.json")).evidence("openai", {"key_RunA"}, dedicated=True).usage
    counted = {name: count for name, count in line.usage.tokens.items() if count}
    assert counted == {"in": 200, "read": 800, "out": 500}
    assert line.tier is None, "it was not asked for"


def test_rows_of_other_keys_are_counted_and_left_aside() -> None:
    reports = read_reports(files("anthropic-1.json", "anthropic-2.json", "openai.json"))
    # One row of another key and one of none at Anthropic, one of another key at OpenAI.
    assert reports.left_aside({"apikey_01RunA", "apikey_01RunB", "key_RunA"}) == (3, 3)


def test_a_provider_without_a_report_says_nothing() -> None:
    found = read_reports(files("openai.json")).evidence("anthropic", {"key_RunA"}, dedicated=True)
    assert (found.reports, found.covered, found.usage) == ((), (), ())


FIRST_YEAR = {"starting_at": "0001-01-01T00:00:00+23:59", "ending_at": "0001-01-01T00:01:00+23:59"}
LAST_YEAR = {"starting_at": "9999-12-31T23:59:00Z", "ending_at": "9999-12-31T23:59:30Z"}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("anthropic-1.json", lambda p: first_row(p).pop("output_tokens"), "data[1].results[0].output_tokens"),
        ("anthropic-1.json", lambda p: first_row(p).update(output_tokens=-1), "data[1].results[0].output_tokens"),
        ("anthropic-1.json", lambda p: first_row(p).update(output_tokens=1.5), "data[1].results[0].output_tokens"),
        ("anthropic-1.json", lambda p: first_row(p).update(output_tokens="5"), "data[1].results[0].output_tokens"),
        ("anthropic-1.json", lambda p: first_row(p).update(output_tokens=True), "data[1].results[0].output_tokens"),
        (
            "anthropic-1.json",
            lambda p: first_row(p).update(thinking_tokens=4),
            "thinking_tokens: this version does not",
        ),
        (
            "anthropic-1.json",
            lambda p: first_row(p)["cache_creation"].update(ephemeral_7d_input_tokens=1),
            "ephemeral_7d_input_tokens: this version does not",
        ),
        (
            "anthropic-1.json",
            lambda p: first_row(p).update(model=None),
            "data[1].results[0].model: the row does not name",
        ),
        ("anthropic-1.json", lambda p: p["data"][1].update(ending_at="2026-11-30T11:01:00Z"), "3600 seconds wide"),
        ("anthropic-1.json", lambda p: p["data"][1].update(starting_at="2026-11-30T10:01:30Z"), "30 seconds wide"),
        ("anthropic-1.json", lambda p: p["data"][1].update(starting_at="2026-11-30T10:01:00"), "data[1].starting_at"),
        ("anthropic-1.json", lambda p: p["data"][1].update(FIRST_YEAR), "data[1]: the bucket starts -"),
        ("anthropic-1.json", lambda p: p["data"][1].update(LAST_YEAR), "data[1]: the bucket starts 253402300740000"),
        ("openai.json", lambda p: p["data"][0].update(start_time=10**12, end_time=10**12 + 1), "data[0].end_time"),
        ("openai.json", lambda p: p["data"][0].update(start_time=10**12 - 40, end_time=10**12), "no time of a report"),
        ("openai.json", lambda p: p["data"][0].update(start_time=253402300800, end_time=253402300860), "no time of"),
        ("anthropic-1.json", lambda p: first_row(p).update(output_tokens=10**12 + 1), "data[1].results[0].output_tok"),
        ("anthropic-1.json", lambda p: p["data"].append(p["data"][0]), "data[3]: the minute 2026-11-30T10:00"),
        (
            "anthropic-1.json",
            lambda p: p["data"][1]["results"].append(first_row(p)),
            "data[1].results[3]: the same key and conditions as anthropic-1.json: data[1].results[0]",
        ),
        ("anthropic-1.json", lambda p: p.pop("has_more"), "has_more"),
        ("openai.json", lambda p: p.update(has_more=True), "has_more: the next page that begins at 2026-11-30T10:02"),
        ("openai.json", lambda p: first_row(p, 0).update(input_cached_tokens=2601), "data[0].results[0].input_tokens"),
        (
            "openai.json",
            lambda p: first_row(p, 0).update(input_cache_write_tokens=401),
            "input_cache_write_tokens: 401",
        ),
        (
            "openai.json",
            lambda p: first_row(p, 0).update(input_uncached_tokens=1),
            "input_uncached_tokens: 1 is not 200",
        ),
        ("openai.json", lambda p: first_row(p, 0).update(object="organization.costs.result"), "results[0].object"),
        ("openai.json", lambda p: first_row(p, 0).update(num_model_requests=None), "results[0].num_model_requests"),
        ("openai.json", lambda p: p["data"][0].update(end_time=p["data"][0]["start_time"] + 86_400), "86400 seconds"),
        ("openai.json", lambda p: p.update(data={}), "data: a usage report is an object"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_path(
    name: str, change: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_reports(changed(name, change))
    assert message in str(refused.value)
    assert name in str(refused.value)


def test_a_page_given_twice_or_missing_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"anthropic-2\.json: the same page as anthropic-2\.json"):
        read_reports([*files("anthropic-1.json", "anthropic-2.json"), *files("anthropic-2.json")])
    with pytest.raises(InvalidInput, match="has_more: the next page that begins at 2026-11-30T10:03"):
        read_reports(files("anthropic-1.json"))


def test_a_report_that_names_no_keys_is_refused() -> None:
    def ungrouped(page: Any) -> None:
        first_row(page, 0).update(api_key_id=None)
        del page["data"][0]["results"][1:]

    with pytest.raises(InvalidInput, match=r"data\[0\]\.results\[0\]\.api_key_id: no row of the report names its key"):
        read_reports(changed("openai.json", ungrouped))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b'{"data": [], "data": []}', b'{"data": [NaN]}', b"[" * 9999]
)
def test_what_is_no_report_is_named(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^x\.json: "):
        read_reports([("x.json", data)])


def test_no_files_say_nothing() -> None:
    assert read_reports([]) == ProviderReports({})
