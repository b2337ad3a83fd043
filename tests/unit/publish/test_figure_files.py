"""The figures as files: deterministic, standing alone, saying in words and in shapes what colour says."""

from __future__ import annotations

import dataclasses
import re
import struct
from xml.etree import ElementTree

import pytest

from controller.domain.dataset import LogicalRunRow
from controller.domain.outcome import EndKind
from controller.publish import figure_png
from controller.publish.figure_files import figure_sheets
from controller.publish.figure_png import figure_files
from controller.publish.figure_sheet import Sheet, fitted, text_width, wrapped
from tests.world.reports import context_of
from tests.world.rounds import attempt, realistic, run

_SVG = "{http://www.w3.org/2000/svg}"
_ALL = ["success-differences", "cost-differences", "time-differences", "cost-success", "repeats"]
_ALL += ["time-of-runs", "cost-of-runs"]


def sheets(rows: list[LogicalRunRow], *, resamples: int = 400) -> dict[str, Sheet]:
    context = context_of(rows, resamples=resamples)
    return {sheet.name: sheet for sheet in figure_sheets(context.analysis, context.rows)}


def texts(sheet: Sheet) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(sheet.svg()).iter(f"{_SVG}text")]


ROWS = realistic([f"task-{number}" for number in range(8)], ["alpha", "beta", "gamma"], seed=4)
DRAWN = sheets(ROWS)


def test_the_same_rows_give_the_same_bytes_in_any_order() -> None:
    assert {name: sheet.svg() for name, sheet in sheets(ROWS[::-1]).items()} == {
        name: sheet.svg() for name, sheet in DRAWN.items()
    }


@pytest.mark.parametrize("name", _ALL)
def test_a_file_stands_alone_and_carries_its_numbers_as_text(name: str) -> None:
    svg = DRAWN[name].svg()
    root = ElementTree.fromstring(svg)
    assert not re.search(r"url\(|@import|<script|<image|href|nan|inf\b", svg)
    assert [child.tag for child in root][:2] == [f"{_SVG}title", f"{_SVG}desc"]
    described = root.findtext(f"{_SVG}desc") or ""
    assert "A" in described and re.search(r"\d", described)
    assert "prefers-color-scheme:dark" in svg
    assert "Rehearsal: scripted model, not a measurement" in " ".join(texts(DRAWN[name]))


@pytest.mark.parametrize("name", _ALL)
def test_nothing_is_drawn_outside_the_sheet_and_no_text_is_small(name: str) -> None:
    sheet = DRAWN[name]
    for element in ElementTree.fromstring(sheet.svg()):
        if element.tag == f"{_SVG}text":
            x, wide = float(element.attrib["x"]), float(text_width(element.text or "", 12))
            left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.attrib["text-anchor"]]
            assert left >= 0 and left + wide <= sheet.width
            assert 0 < float(element.attrib["y"]) < sheet.height
    assert min(int(size) for size in re.findall(r"font-size:(\d+)px", sheet.svg())) >= 12
    assert sheet.width <= 420


def test_one_arm_has_no_comparisons_and_one_task_no_intervals() -> None:
    assert list(sheets(realistic(["t1", "t2"], ["only"]))) == _ALL[3:]
    assert list(sheets([run("t", "a", 1), run("t", "b", 1)])) == _ALL


def test_decisions_are_words_and_filled_marks() -> None:
    rows = [
        run(f"t{task}", arm, replicate, success=arm == "best")
        for task in range(12)
        for arm in ("best", "worst")
        for replicate in (1, 2, 3)
    ]
    drawn = sheets(rows, resamples=1_000)["success-differences"]
    assert "A more successful" in texts(drawn) and 'class="dot strong"' in drawn.body
    assert "no reliable difference" in texts(sheets(ROWS)["time-differences"])


def test_an_unbounded_ratio_ends_in_an_arrow_and_says_so() -> None:
    rows = [
        run(f"t{task}", arm, 1, success=arm == "works" or task == 0) for task in range(12) for arm in ("rare", "works")
    ]
    drawn = sheets(rows, resamples=1_000)["cost-differences"]
    assert "unbounded" in drawn.described and "<path" in drawn.body
    assert any("unbounded" in text for text in texts(drawn))


def test_runs_that_were_cut_short_are_hollow_and_counted() -> None:
    cut = attempt(end=EndKind.TIMEOUT, wall_ms=1_800_000, verified=None)
    rows = [
        run(f"t{task}", arm, 1, attempts=[cut] if arm == "slow" else None, success=arm != "slow")
        for task in range(6)
        for arm in ("quick", "slow")
    ]
    drawn = sheets(rows)
    assert drawn["time-of-runs"].body.count('class="bar open"') == 1
    assert "p50 ≥ 30.0 min, p90 ≥ 30.0 min; 6 cut short" in texts(drawn["time-of-runs"])
    assert "<path" in drawn["time-of-runs"].body
    assert 'class="bar open"' not in drawn["cost-of-runs"].body


def test_an_unknown_cost_is_counted_and_never_drawn_as_zero() -> None:
    rows = [run(task, arm, 1) for task in ("t1", "t2", "t3") for arm in ("a", "b")]
    rows[0] = run("t1", "a", 1, outcome="invalid", attempts=[attempt(usd=None)])
    drawn = sheets(rows)
    assert "p50 n/a, p90 n/a; 1 of 3 not known" in texts(drawn["cost-of-runs"])
    assert "0.667 at unknown" not in drawn["cost-success"].described
    assert "A, a: 66.7 % at unknown cost per success" in drawn["cost-success"].described
    assert "not qualified" in texts(drawn["cost-differences"])


def test_the_shortest_time_and_the_smallest_cost_have_ticks_with_all_their_decimals() -> None:
    """A row's time is a whole number of milliseconds, its cost has up to 30 decimals."""
    least = f"0.{'0' * 29}1"
    rows = [run(task, arm, 1, wall_ms=1, usd=least) for task in ("t", "u") for arm in ("a", "b")]
    drawn = sheets(rows)
    assert {"0.0005 s", "0.001 s"} <= set(texts(drawn["time-of-runs"]))
    assert f"$0.{'0' * 30}5" in texts(drawn["cost-of-runs"])
    assert f"${least}0" in texts(drawn["cost-success"])


def test_no_known_cost_at_all_is_a_sentence() -> None:
    rows = [
        run(task, arm, 1, outcome="invalid", attempts=[attempt(usd=None)])
        for task in ("t1", "t2")
        for arm in ("a", "b")
    ]
    assert any(text.startswith("No arm has a known cost per success") for text in texts(sheets(rows)["cost-success"]))


@pytest.mark.parametrize(("arms", "tasks"), [(12, 100), (28, 4)])
def test_many_arms_and_tasks_widen_only_the_grid(arms: int, tasks: int) -> None:
    rows = [run(f"t{task:03}", f"arm-{arm:02}", 1) for task in range(tasks) for arm in range(arms)]
    drawn = sheets(rows, resamples=100)
    assert len(re.findall('class="cell all"', drawn["repeats"].body)) == tasks * arms
    assert all(sheet.width == 420 for name, sheet in drawn.items() if name != "repeats")


def test_long_names_are_cut_in_their_middle_to_the_width() -> None:
    name = "configuration-of-a-harness-with-a-very-long-name-variant-b"
    shown = fitted(name, 200)
    assert text_width(shown) <= 200 and shown.startswith("configuration") and shown.endswith("-variant-b")
    assert all(text_width(line) <= 100 for line in wrapped(f"two words and {name}", 100))
    assert fitted("short", 200) == "short"


def test_hostile_names_stay_text() -> None:
    assert fitted("a\u202eb", 200) == "a\ufffdb"
    escaped = Sheet("n", "<b>", '"&<', 10, 10, "").svg()
    assert "<b>" not in escaped and '"&<' not in escaped


def test_every_figure_is_pixels_of_twice_its_size_in_light_and_dark() -> None:
    files = figure_files([DRAWN["cost-success"]])
    assert sorted(files) == ["cost-success-dark.png", "cost-success.png", "cost-success.svg"]
    size = (2 * DRAWN["cost-success"].width, 2 * DRAWN["cost-success"].height)
    for name in ("cost-success-dark.png", "cost-success.png"):
        assert files[name][:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", files[name][16:24]) == size
    assert files["cost-success.png"] != files["cost-success-dark.png"]
    assert figure_files([DRAWN["cost-success"]]) == files


def test_the_fonts_are_those_named_by_file() -> None:
    assert all(font.is_absolute() for font in figure_png.FONTS)


def test_a_figure_too_tall_for_pixels_is_svg_only() -> None:
    tall = dataclasses.replace(DRAWN["cost-success"], height=30_001)
    assert list(figure_files([tall])) == ["cost-success.svg"]
