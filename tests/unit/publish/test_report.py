"""The report says the conclusion first, hides nothing, trusts no string and is the same twice."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.publish.report import Fact, Incident, ReportContext, render_report
from controller.publish.report_rows import END_WORDS
from controller.publish.report_text import plain
from tests.world.reports import TITLES, context_of
from tests.world.rounds import attempt, realistic, run

ARMS = ["codex", "mini"]
ROWS = realistic(list(TITLES), ARMS, seed=5)
CONTEXT = context_of(ROWS, own="codex", titles={"codex": "Codex CLI", "mini": "mini-swe-agent"})
PAGE = render_report(CONTEXT)
HOSTILE = '<script>alert("x")</script><img src=x onerror=y>\u202egnihtyreve\u0007{{ 7 * 7 }}'


class Outline(HTMLParser):
    """Elements that close, their attributes, and the text of the page."""

    VOID = frozenset({"meta", "line", "circle", "path", "rect", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"title", "style"} & set(self.open):
            self.text += data


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    return parser


def hostile_context() -> ReportContext:
    crash = attempt(1, end=EndKind.HARNESS_CRASH, reason=HOSTILE, verified=True, would_have_passed=True)
    rows = [run(task, arm, 1, attempts=[crash], success=False) for task in ("t1", "t2") for arm in ("a", "b")]
    context = context_of(rows, title=HOSTILE, titles={"a": HOSTILE, "b": HOSTILE})
    incident = Incident(at=InstantMs(0), event="cell-halted", subject=HOSTILE, text=HOSTILE)
    return context.model_copy(update={"incidents": (incident,), "facts": (Fact(name=HOSTILE, value=HOSTILE),)})


def test_the_same_context_gives_the_same_bytes() -> None:
    again = context_of(list(ROWS), own="codex", titles={"codex": "Codex CLI", "mini": "mini-swe-agent"})
    assert render_report(again) == PAGE


def test_the_page_stands_alone() -> None:
    names = {tag for tag, _ in outline(PAGE).elements}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert "default-src 'none'" in PAGE
    assert not re.search(r"(?:https?:)?//[a-z]", PAGE)
    assert "url(" not in PAGE and "@import" not in PAGE


def test_every_element_closes_and_every_link_has_a_target() -> None:
    page = outline(PAGE)
    assert page.open == []
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    for _, attributes in page.elements:
        if str(attributes.get("href", "")).startswith("#"):
            assert str(attributes["href"])[1:] in identities
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name) is None or attributes[name] in identities


def test_the_page_has_landmarks_one_first_heading_and_table_headers() -> None:
    elements = outline(PAGE).elements
    tags = [tag for tag, _ in elements]
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    assert all(
        attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
        for tag, attributes in elements
        if tag == "svg" and "width" in attributes
    )
    assert ("html", {"lang": "en"}) in elements


def test_the_conclusion_comes_before_every_number() -> None:
    text = outline(PAGE).text
    assert text.index("Rehearsal: scripted model, not a measurement") < text.index("Conclusion of the rehearsal")
    assert text.index("Codex CLI and mini-swe-agent: no reliable difference.") < text.index("logical runs")
    headings = ["The arms", "The comparisons", "Every attempt", "Check it yourself", "Frozen facts"]
    places = [text.rindex(heading) for heading in headings]
    assert places == sorted(places)


def test_every_attempt_is_there_with_its_reason_cost_and_time() -> None:
    text = outline(PAGE).text
    for row in ROWS:
        for one in row.attempts:
            assert one.attempt_id in text
            assert one.reason in text
    assert f"{sum(len(row.attempts) for row in ROWS)}" in text


def test_a_measured_round_carries_no_rehearsal_mark() -> None:
    rows = [row.model_copy(update={"kind": "measured"}) for row in ROWS]
    assert "rehearsal:" not in outline(render_report(context_of(rows))).text.lower()


def test_it_says_when_nothing_was_excluded() -> None:
    assert "None. Every one of the 36 predeclared logical runs was run" in outline(PAGE).text


def test_it_names_what_is_invalid_missing_or_would_have_passed() -> None:
    rows = [run(task, arm, replicate) for task in ("t1", "t2") for arm in ("a", "b") for replicate in (1, 2)]
    rows[0] = run("t1", "a", 1, outcome="invalid", attempts=[attempt(usd=None)])
    rows[1] = run("t1", "a", 2, outcome="missing", attempts=[])
    crash = attempt(1, end=EndKind.HARNESS_CRASH, reason="exit code 1", verified=True, would_have_passed=True)
    rows[2] = run("t1", "b", 1, attempts=[crash], success=False)
    text = outline(render_report(context_of(rows))).text
    assert "None. Every one" not in text
    assert "t1.a.r1: some request has no usage record" in text
    assert "t1.a.r2: predeclared, without a scored outcome" in text
    assert "t1.b.r1: attempt 1 harness crashed; its patch passes verification" in text
    assert "the cost of 2 of 4 logical runs is unknown, and unknown is not zero" in text


@pytest.mark.parametrize("end", EndKind)
def test_every_way_to_end_has_words(end: EndKind) -> None:
    ended = attempt(end=end, reason="as told", verified=end is EndKind.NORMAL)
    rows = [run(task, arm, 1, attempts=[ended], success=False) for task in ("t1", "t2") for arm in ("a", "b")]
    text = outline(render_report(context_of(rows))).text
    assert text.count(END_WORDS[end]) >= 4


def test_untrusted_strings_stay_text() -> None:
    page = render_report(hostile_context())
    parsed = outline(page)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in parsed.elements)
    assert not any(name.startswith("on") for _, attributes in parsed.elements for name in attributes)
    assert "{{ 7 * 7 }}" in parsed.text
    assert "\u202e" not in page and "\u0007" not in page


def test_a_long_string_is_cut() -> None:
    assert plain("x" * 10_000) == "x" * 600 + "…"
    assert plain("a\u200bb\u2066c") == "a\ufffdb\ufffdc"


@pytest.mark.parametrize("arms", [1, 2, 12, 28])
def test_any_number_of_arms_fits(arms: int) -> None:
    ids = [f"arm-{place:02d}" for place in range(arms)]
    text = outline(render_report(context_of(realistic(["t1", "t2", "t3"], ids), resamples=200))).text
    assert all(f"Arm {place:02d}" in text for place in range(arms))
    assert ("AB\u00a0Arm 27" in text) == (arms == 28)


def test_no_success_and_no_cost_are_said_in_words() -> None:
    none = [run(task, arm, 1, success=False) for task in ("t1", "t2") for arm in ("a", "b")]
    assert "no success, cost unbounded" in outline(render_report(context_of(none))).text
    unknown = [
        run(task, arm, 1, outcome="invalid", attempts=[attempt(usd=None)])
        for task in ("t1", "t2")
        for arm in ("a", "b")
    ]
    assert "No arm has a known cost per success" in outline(render_report(context_of(unknown))).text


def test_when_our_own_arm_loses_the_winner_is_named_first() -> None:
    rows = [
        run(f"t{task}", arm, replicate, success=arm != "ours")
        for arm in ("ours", "other", "third")
        for task in range(12)
        for replicate in (1, 2, 3)
    ]
    text = outline(render_report(context_of(rows, own="ours"))).text
    conclusion = text[text.index("Conclusion of the rehearsal") :]
    assert re.match(r"Conclusion of the rehearsal\s+Other was more successful than Ours: \+100\.0", conclusion)


def test_times_and_costs_of_single_runs_are_drawn_and_said() -> None:
    cut = attempt(end=EndKind.TIMEOUT, wall_ms=1_800_000, verified=None)
    rows = [
        run(f"t{task}", arm, 1, attempts=[cut] if arm == "slow" else None, success=arm != "slow")
        for task in range(6)
        for arm in ("quick", "slow")
    ]
    page = render_report(context_of(rows))
    assert page.count('class="bar open"') == 1 and page.count('class="bar"') == 3
    assert "p50 ≥ 30.0 min, p90 ≥ 30.0 min; 6 cut short" in outline(page).text
