"""What the template shows, prepared: letters for arms, sentences, plots, tables. Nothing here is estimated anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from markupsafe import Markup

from controller.domain.dataset import LogicalRunRow
from controller.domain.exact import Exact, exact_from_text
from controller.domain.instant import instant_text
from controller.domain.money import usd_display, usd_from_text
from controller.domain.outcome import EndKind
from controller.domain.provider_report import Figure
from controller.protocols.harness_round.decision import sentence
from controller.protocols.harness_round.estimates import Estimate, PairAnalysis, pair_evidence
from controller.publish import figures, report_facts
from controller.publish.figure_files import apart, point
from controller.publish.figure_runs import Measure, runs_row, spread_of
from controller.publish.figure_scales import RATE, around_zero
from controller.publish.report_context import Incident, ReportContext
from controller.publish.report_rows import (
    END_WORDS,
    ArmView,
    Finding,
    LedgerView,
    PairView,
    SpreadView,
    TaskView,
    attempts,
    cell,
    run_name,
)
from controller.publish.report_text import letter, plain, signed_points, verdict

_PHONE_WIDTH = 320  # of a plot on the narrowest page: labels that keep apart there keep apart on any
SENTENCES_MAX = 8  # of the conclusion's list; the comparisons below hold them all


@dataclass(frozen=True)
class View:
    """The whole page."""

    context: ReportContext
    arms: tuple[ArmView, ...]
    pairs: tuple[PairView, ...]
    axis: Markup

    @property
    def rehearsal(self) -> bool:
        return self.context.analysis.kind == "rehearsal"

    @cached_property
    def decided(self) -> tuple[PairView, ...]:
        return tuple(pair for pair in self.pairs if pair.verdict)

    @cached_property
    def undecided(self) -> tuple[PairView, ...]:
        return tuple(pair for pair in self.pairs if not pair.verdict)

    @cached_property
    def ordered(self) -> tuple[PairView, ...]:
        """The reliable differences: those our own arm lost first, then success before efficiency, then by size."""
        own = {arm.arm.id for arm in self.arms if arm.arm.is_own}

        def weight(pair: PairView) -> tuple[bool, bool, Fraction]:
            decision = pair.found.decision
            return decision.loser not in own, decision.rule != "success", -abs(_fraction(pair.found.success.value))

        return tuple(sorted(self.decided, key=weight))

    @cached_property
    def own_lost(self) -> bool:
        own = {arm.arm.id for arm in self.arms if arm.arm.is_own}
        return any(pair.found.decision.loser in own for pair in self.decided)

    @cached_property
    def conclusion(self) -> str:
        """The sentence a reader may quote. When our own arm lost, it names the winner and the difference."""
        if len(self.pairs) == 1:
            return self.pairs[0].sentence
        return self.ordered[0].sentence if self.own_lost else self.context.analysis.tally

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What follows the conclusion when there are many arms."""
        if len(self.pairs) <= 1:
            return ()
        listed = [pair.sentence for pair in self.ordered[:SENTENCES_MAX]]
        return (self.context.analysis.tally, *listed[1:]) if self.own_lost else tuple(listed)

    @cached_property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The round in six numbers."""
        analysis, rows = self.context.analysis, self.context.rows
        costs = [row.usd for row in rows]
        known = [usd_from_text(cost) for cost in costs if cost is not None]
        total = sum(known, Fraction(0))
        estimated = any(row.figure is Figure.ESTIMATED for row in rows)
        spent = usd_display(total, 2) if len(known) == len(costs) else f"≥ {usd_display(total, 2)}"
        return (
            ("arms", str(len(self.arms))),
            ("tasks" if analysis.scope == "all" else "sealed tasks", str(len(analysis.task_ids))),
            ("repeats", str(analysis.replicates)),
            ("logical runs", f"{len(rows):,}"),
            ("attempts", f"{sum(len(row.attempts) for row in rows):,}"),
            ("true cost, partly estimated" if estimated else "true cost", spent),
        )

    @cached_property
    def scatter(self) -> Markup | None:
        points = [point(arm.key, arm.found) for arm in self.arms]
        told = "; ".join(
            f"{arm.key}, {plain(arm.arm.title)}: {arm.found.success_rate.value_shown} at "
            f"{arm.found.cost_per_success.value_shown}"
            for arm in self.arms
        )
        return figures.cost_against_success(points, f"Success rate against cost per success. {told}.")

    @cached_property
    def spreads(self) -> tuple[SpreadView, ...]:
        """Times and costs of the logical runs of every arm."""
        titles: dict[Measure, str] = {"time": "Time of a logical run", "cost": "Cost of a logical run"}
        views = []
        for measure, title in titles.items():
            found = spread_of(self.context.analysis, self.context.rows, measure)
            rows = tuple((arm, found.words[arm.arm.id], runs_row(found.marks.get(arm.arm.id, ""))) for arm in self.arms)
            axis = Markup()
            if found.scale:
                axis = figures.axis_row(found.scale, apart(found.scale, found.labels, _PHONE_WIDTH))
            views.append(SpreadView(title, rows, axis))
        return tuple(views)

    @cached_property
    def tasks(self) -> tuple[TaskView, ...]:
        entries = {task.id: task for task in self.context.manifest.tasks}
        return tuple(
            TaskView(
                id=task,
                title=entries[task].title,
                stratum=entries[task].stratum,
                visibility=entries[task].visibility,
                cells=tuple(cell(arm, place) for arm in self.arms),
            )
            for place, task in enumerate(self.context.analysis.task_ids)
        )

    @cached_property
    def ledgers(self) -> tuple[LedgerView, ...]:
        by_arm: dict[str, list[LogicalRunRow]] = {}
        for row in sorted(self.context.rows, key=lambda each: (each.task, each.replicate)):
            by_arm.setdefault(row.arm, []).append(row)
        return tuple(
            LedgerView(
                arm=arm,
                runs=len(by_arm[arm.arm.id]),
                attempts=tuple(view for row in by_arm[arm.arm.id] for view in attempts(row)),
            )
            for arm in self.arms
        )

    @cached_property
    def invalid(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(run_name(row), "some request has no usage record and no zero-bill proof")
            for row in self.context.rows
            if row.outcome == "invalid"
        )

    @cached_property
    def missing(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(run_name(row), "predeclared, without a scored outcome")
            for row in self.context.rows
            if row.outcome == "missing"
        )

    @cached_property
    def would_have_passed(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(run_name(row), f"attempt {attempt.number} {END_WORDS[attempt.end]}; its patch passes verification")
            for row in self.context.rows
            for attempt in row.attempts
            if attempt.would_have_passed and row.outcome != "success"
        )

    @cached_property
    def retry_rows(self) -> tuple[tuple[ArmView, tuple[int, ...]], ...]:
        """Attempts of each arm by how they ended, in the order of `END_WORDS`."""
        counts: dict[str, Counter[EndKind]] = {arm.arm.id: Counter() for arm in self.arms}
        for row in self.context.rows:
            counts[row.arm].update(attempt.end for attempt in row.attempts)
        return tuple((arm, tuple(counts[arm.arm.id][end] for end in END_WORDS)) for arm in self.arms)

    @property
    def end_words(self) -> tuple[str, ...]:
        return tuple(END_WORDS.values())

    @cached_property
    def matrix(self) -> tuple[tuple[ArmView, tuple[str, ...]], ...]:
        """Row against column: `+` more successful, `±` more efficient, `−` and `∓` the reverse, `·` neither."""
        marks: dict[tuple[str, str], str] = {}
        for pair in self.pairs:
            decision = pair.found.decision
            if decision.winner is not None and decision.loser is not None:
                won, lost = ("+", "−") if decision.rule == "success" else ("±", "∓")
                marks[decision.winner, decision.loser], marks[decision.loser, decision.winner] = won, lost
            else:
                marks[pair.found.first, pair.found.second] = marks[pair.found.second, pair.found.first] = "·"
        ids = [arm.arm.id for arm in self.arms]
        return tuple(
            (arm, tuple(marks.get((arm.arm.id, other), "" if other == arm.arm.id else " ") for other in ids))
            for arm in self.arms
        )

    @property
    def incidents(self) -> tuple[tuple[str, Incident], ...]:
        return tuple((instant_text(incident.at), incident) for incident in self.context.incidents)

    @property
    def facts(self) -> tuple[report_facts.FactGroup, ...]:
        return report_facts.frozen_facts(self.context)

    @property
    def limitations(self) -> tuple[str, ...]:
        return report_facts.limitations(self.context)


def view_of(context: ReportContext) -> View:
    """Prepare the page. Raises KeyError when manifest and analysis do not name the same arms and tasks."""
    analysis, manifest = context.analysis, context.manifest
    arms = tuple(
        ArmView(
            key=letter(place),
            arm=manifest.arm(found.arm),
            model=manifest.lane(manifest.arm(found.arm).lane).model,
            found=found,
            plot=_rate_plot(found.success_rate),
        )
        for place, found in enumerate(analysis.arms)
    )
    scale = around_zero(_difference_reach(analysis.pairs))
    by_id = {arm.arm.id: arm for arm in arms}
    keys = {arm.arm.id: arm.key for arm in arms}
    names = {arm.arm.id: arm.arm.title for arm in arms}
    if len(set(names.values())) < len(names):
        names = {arm.arm.id: f"{arm.arm.title} ({arm.key})" for arm in arms}
    pairs = tuple(
        PairView(
            first=by_id[pair.first],
            second=by_id[pair.second],
            found=pair,
            sentence=sentence(pair.decision, pair_evidence(pair, analysis), names),
            verdict=verdict(pair.decision, keys),
            plot=figures.interval_row(
                scale,
                exact_from_text(pair.success.low),
                exact_from_text(pair.success.value),
                exact_from_text(pair.success.high),
                strong=pair.success.rejected,
                baseline=Fraction(0),
            ),
        )
        for pair in analysis.pairs
    )
    labels = [signed_points(tick) for tick in scale.ticks]
    return View(context=context, arms=arms, pairs=pairs, axis=figures.axis_row(scale, labels))


def _difference_reach(pairs: Sequence[PairAnalysis]) -> Fraction:
    ends = [exact_from_text(end) for pair in pairs for end in (pair.success.low, pair.success.value, pair.success.high)]
    return max((abs(end) for end in ends if isinstance(end, Fraction)), default=Fraction(0))


def _rate_plot(rate: Estimate) -> Markup:
    low, value, high = (exact_from_text(end) for end in (rate.low, rate.value, rate.high))
    return figures.interval_row(RATE, low, value, high, strong=True, baseline=None)


def _fraction(text: str | None) -> Fraction:
    value: Exact | None = exact_from_text(text)
    return value if isinstance(value, Fraction) else Fraction(0)
