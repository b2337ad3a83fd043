"""The figures of an analysis as files: what they show and in which order. Pure; nothing here is estimated anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from controller.domain.dataset import LogicalRunRow
from controller.domain.exact import Exact, exact_from_text
from controller.domain.words import numbered
from controller.protocols.harness_round.decision import Criterion
from controller.protocols.harness_round.estimates import Analysis, ArmAnalysis, Comparison, PairAnalysis
from controller.publish import figures
from controller.publish.figure_runs import RUNS_HEIGHT, Measure, spread_of
from controller.publish.figure_scales import Scale, around_one, around_zero, even_apart
from controller.publish.figure_sheet import MARGIN, WIDTH, Drawing, Sheet, fitted, text_width
from controller.publish.report_text import letter, signed_points, verdict

_AXIS_HEIGHT: Final = 18
_PAIRS_ON_A_SCREEN: Final = 10
_CELL_WIDTH: Final = 22
_CELL_HEIGHT: Final = 20
_TASK_WIDTH_MIN: Final = 110
_TASK_WIDTH_MAX: Final = 220
_ARROWS: Final = "An arrow: the bound lies beyond the edge, or is infinite."
_PAIRS: Final[Mapping[Criterion, tuple[str, str]]] = {
    "success": ("Differences of success rates", "First minus second, in percentage points."),
    "cost": ("Ratios of cost per success", "First over second; left of 1 the first is cheaper."),
    "time": ("Ratios of time at p90", "First over second; left of 1 the first is faster."),
}


def figure_sheets(analysis: Analysis, rows: Sequence[LogicalRunRow]) -> tuple[Sheet, ...]:
    """Every figure of a harness-round analysis; `rows` are those it was made from.

    Pairwise figures need two arms; a figure that has nothing to show says why.
    """
    keys = {arm.arm: letter(place) for place, arm in enumerate(analysis.arms)}
    criteria: tuple[Criterion, ...] = ("success", "cost", "time") if analysis.pairs else ()
    return (
        *(_comparisons(analysis, keys, criterion) for criterion in criteria),
        _cost_success(analysis, keys),
        _repeats(analysis, keys),
        _runs(analysis, keys, rows, "time"),
        _runs(analysis, keys, rows, "cost"),
    )


def _about(analysis: Analysis, text: str) -> str:
    mark = "Rehearsal: scripted model, not a measurement. " if analysis.kind == "rehearsal" else ""
    return f"{mark}{text} Round {analysis.round_id}."


def _legend(keys: Mapping[str, str]) -> dict[str, str]:
    return {key: arm for arm, key in keys.items()}


def _comparisons(analysis: Analysis, keys: Mapping[str, str], criterion: Criterion) -> Sheet:
    """A forest plot: each pair's interval within its Holm family, with the decision in words."""
    title, what = _PAIRS[criterion]
    compared = [(pair, _comparison(pair, criterion)) for pair in analysis.pairs]
    ends = [end for _, one in compared for end in _ends(one) if isinstance(end, Fraction)]
    if criterion == "success":
        null, scale = Fraction(0), around_zero(max(map(abs, ends), default=Fraction(0)))
        labels = [signed_points(tick) for tick in scale.ticks]
    else:
        null, scale = Fraction(1), around_one(max((max(end, 1 / end) for end in ends if end), default=Fraction(1)))
        labels = [str(tick) for tick in scale.ticks]
    drawing, told = Drawing(), []
    how = f"Filled: Holm's test rejects equality. {_ARROWS} Words at the right: the decision of all rules."
    drawing.head(title, _about(analysis, f"{what} {how}"))
    drawing.legend(_legend(keys))
    if len(compared) > _PAIRS_ON_A_SCREEN:
        _axis(drawing, scale, labels)
        drawing.top += 6
    for pair, one in sorted(compared, key=lambda each: each[0].decision.winner is None):
        decided = verdict(pair.decision, keys) or "no reliable difference"
        low, value, high = _ends(one)
        between = f"{one.value_shown} ({one.low_shown} to {one.high_shown})".replace(" points", "")
        number = between if one.qualified else "not qualified"
        told.append(f"{keys[pair.first]} against {keys[pair.second]}: {number}, {decided}")
        _pair_line(drawing, f"{keys[pair.first]} : {keys[pair.second]}", number, decided)
        if one.qualified:
            marks = figures.interval_marks(scale, low, value, high, strong=one.rejected, baseline=null)
            drawing.view(marks, height=figures.ROW_HEIGHT, gap=4)
        else:
            drawing.text(fitted(one.reason, drawing.inner), "soft")
            drawing.top += 13
    _axis(drawing, scale, labels)
    return drawing.sheet(f"{criterion}-differences", title, f"{what} {'; '.join(told)}.")


def _comparison(pair: PairAnalysis, criterion: Criterion) -> Comparison:
    return {"success": pair.success, "cost": pair.cost, "time": pair.time}[criterion]


def _ends(one: Comparison) -> tuple[Exact | None, Exact | None, Exact | None]:
    return exact_from_text(one.low), exact_from_text(one.value), exact_from_text(one.high)


def _pair_line(drawing: Drawing, pair: str, number: str, decided: str) -> None:
    """The pair, its numbers and the decision over the interval; in two lines when one is too narrow."""
    drawing.top += 15
    drawing.label(MARGIN, drawing.top - 2, pair, "who")
    after = MARGIN + 8 + int(text_width(pair, 13))
    drawing.label(
        WIDTH - MARGIN, drawing.top - 2, decided, "who" if not decided.startswith("no ") else "soft", anchor="end"
    )
    if after + text_width(number) + text_width(decided, 13) > drawing.inner:
        drawing.top += 15
        after = MARGIN
    drawing.label(after, drawing.top - 2, number, "soft")


def _axis(drawing: Drawing, scale: Scale, labels: Sequence[str]) -> None:
    drawing.view(figures.axis_marks(scale, apart(scale, labels, drawing.inner)), height=_AXIS_HEIGHT)


def apart(scale: Scale, labels: Sequence[str], width: int) -> list[str]:
    """Tick labels, empty where two would touch at that width."""
    least = Fraction(max(text_width(label) for label in labels) + 8, width)
    kept = even_apart([scale.share(tick) for tick in scale.ticks], least)
    return [label if keep else "" for label, keep in zip(labels, kept, strict=True)]


def _cost_success(analysis: Analysis, keys: Mapping[str, str]) -> Sheet:
    title = "Cost against success"
    about = "Across: cost per success in US dollars. Upwards: success rate. Lines are 95 % intervals. "
    drawing = Drawing()
    drawing.head(title, _about(analysis, f"{about}{_ARROWS} Up and to the left is better."))
    made = figures.scatter([point(keys[arm.arm], arm) for arm in analysis.arms])
    if made is None:
        drawing.text(
            f"No arm has a known cost per success: {analysis.arms[0].cost_per_success.reason}.", "who", size=13
        )
    else:
        top = drawing.top
        drawing.view(made.up, height=figures.SCATTER_HEIGHT, right=WIDTH - MARGIN - 40)
        drawing.top = top
        drawing.view(made.field, height=figures.SCATTER_HEIGHT, left=MARGIN + 50, right=MARGIN + 24)
        drawing.view(made.along, height=20, left=MARGIN + 50, right=MARGIN + 24, gap=4)
    told = {arm.arm: f"{arm.success_rate.value_shown} at {_cost_text(arm)} per success" for arm in analysis.arms}
    drawing.legend(_legend(keys), {keys[arm]: said for arm, said in told.items()})
    described = "; ".join(f"{keys[arm]}, {arm}: {said}" for arm, said in told.items())
    return drawing.sheet("cost-success", title, f"{about}{described}.")


def _cost_text(arm: ArmAnalysis) -> str:
    value = arm.cost_per_success.value
    return {None: "unknown cost", "unbounded": "unbounded cost"}.get(value, arm.cost_per_success.value_shown)


def point(key: str, arm: ArmAnalysis) -> figures.Point:
    """An arm's place in the figure of cost against success."""
    cost, rate = arm.cost_per_success, arm.success_rate
    value = exact_from_text(rate.value)
    return figures.Point(
        key=key,
        cost=exact_from_text(cost.value),
        cost_low=exact_from_text(cost.low),
        cost_high=exact_from_text(cost.high),
        rate=value if isinstance(value, Fraction) else Fraction(0),
        rate_low=exact_from_text(rate.low),
        rate_high=exact_from_text(rate.high),
    )


def _repeats(analysis: Analysis, keys: Mapping[str, str]) -> Sheet:
    """The grid of tasks by arms; below it, how many tasks have 0, 1, ... successes."""
    count = analysis.replicates
    title = f"Successes of {numbered(count, 'repeat')}, task by task"
    cells = _CELL_WIDTH * len(analysis.arms)
    names = min(max(_TASK_WIDTH_MIN, WIDTH - 2 * MARGIN - cells), _TASK_WIDTH_MAX)
    drawing = Drawing(width=max(WIDTH, 2 * MARGIN + names + cells))
    about = "Solid: every repeat succeeded. Tinted: some did. Asterisk: a run is invalid, missing or would have passed."
    drawing.head(title, _about(analysis, about))
    drawing.legend(_legend(keys))
    columns = {arm.arm: MARGIN + names + _CELL_WIDTH * place for place, arm in enumerate(analysis.arms)}
    drawing.top += 18
    for name, left in columns.items():
        drawing.label(left + _CELL_WIDTH // 2, drawing.top - 5, keys[name], "who", anchor="middle")
    for place, task in enumerate(analysis.task_ids):
        drawing.label(MARGIN, drawing.top + 14, fitted(task, names - 6), "")
        for arm in analysis.arms:
            found = arm.tasks[place]
            kind = "all" if found.successes == found.replicates else "part" if found.successes else ""
            star = "*" if found.unknown or found.would_have_passed else ""
            _cell(drawing, columns[arm.arm], f"{found.successes}{star}", kind)
        drawing.top += _CELL_HEIGHT
    for hits in range(count + 1):
        drawing.top += 18
        drawing.label(MARGIN, drawing.top, f"tasks with {hits} of {count}", "soft")
        for arm in analysis.arms:
            middle = columns[arm.arm] + _CELL_WIDTH // 2
            drawing.label(middle, drawing.top, str(arm.by_successes[hits].tasks), "soft", anchor="middle")
    told = "; ".join(
        f"{keys[arm.arm]}, {arm.arm}: "
        + ", ".join(f"{numbered(one.tasks, 'task')} with {one.successes}" for one in arm.by_successes)
        for arm in analysis.arms
    )
    return drawing.sheet("repeats", title, f"{told}.")


def _cell(drawing: Drawing, left: int, text: str, kind: str) -> None:
    drawing.parts.append(
        f'<rect class="cell {kind}" x="{left + 1}" y="{drawing.top + 1}" width="{_CELL_WIDTH - 2}" '
        f'height="{_CELL_HEIGHT - 2}" rx="2"/>'
    )
    style = "over" if kind == "all" else ""
    drawing.label(left + _CELL_WIDTH // 2, drawing.top + 14, text, style, anchor="middle")


def _runs(analysis: Analysis, keys: Mapping[str, str], rows: Sequence[LogicalRunRow], measure: Measure) -> Sheet:
    title = "Time of the logical runs" if measure == "time" else "Cost of the logical runs"
    about = "All attempts of a run together; one scale for all arms. Below the bars: from p50 (dot) to p90. "
    if measure == "time":
        about += "Hollow: cut short, so the true time is longer; an arrow: so is the p90. "
    spread = spread_of(analysis, rows, measure)
    drawing = Drawing()
    drawing.head(title, _about(analysis, f"{about}The scale is nearly logarithmic."))
    for arm, said in spread.words.items():
        drawing.top += 18
        drawing.label(MARGIN, drawing.top - 4, f"{keys[arm]}  {fitted(arm, drawing.inner - 40)}", "who")
        drawing.text(said, "soft")
        if arm in spread.marks:
            drawing.top += 4
            drawing.view(spread.marks[arm], height=RUNS_HEIGHT, gap=2)
    if spread.scale:
        _axis(drawing, spread.scale, spread.labels)
    told = "; ".join(f"{keys[arm]}, {arm}: {said}" for arm, said in spread.words.items())
    return drawing.sheet(f"{measure}-of-runs", title, f"{about}{told}.")
