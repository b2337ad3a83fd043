"""The report of a cost-index or an optimizer-matrix: conclusion, gates and cells as tables on one page. Pure.

It is the public table: no id of the round, of a logical run or of an attempt stands on it. Nothing is estimated anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.domain.ids import Digest
from controller.domain.instant import instant_text
from controller.domain.plan import RoundManifest
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.cost_index.estimates import Estimate as CostEstimate
from controller.protocols.cost_index.show import UNDEFINED
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis, Policy
from controller.publish.report import environment
from controller.publish.report_context import Version

MARKS = {True: "passes", False: "does not pass", None: "undecided"}
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names its rows."""

    title: str
    caption: str
    head: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template shows."""

    manifest: RoundManifest
    rehearsal: bool
    container: bool
    conclusion: str
    tables: tuple[Table, ...]
    facts: tuple[tuple[str, str], ...]
    limitations: tuple[str, ...]
    versions: tuple[Version, ...]


def render_tables(
    manifest: RoundManifest,
    manifest_digest: Digest,
    dataset_digest: Digest,
    analysis: CostIndexAnalysis | OptimizerAnalysis,
    *,
    isolation: str,
    versions: tuple[Version, ...] = (),
) -> str:
    """The page as text, ended by a newline. The same inputs give the same bytes on any machine."""
    is_index = isinstance(analysis, CostIndexAnalysis)
    page = Page(
        manifest=manifest,
        rehearsal=analysis.kind == "rehearsal",
        container=isolation == "container",
        conclusion=analysis.conclusion,
        tables=_index_tables(analysis) if isinstance(analysis, CostIndexAnalysis) else _matrix_tables(analysis),
        facts=(
            ("protocol", manifest.protocol),
            ("kind", manifest.kind),
            ("frozen", instant_text(manifest.frozen_at)),
            ("manifest", manifest_digest),
            ("dataset", dataset_digest),
            ("corpus root", manifest.corpus_root),
            ("rate card", manifest.rate_card_digest),
            ("software", f"{manifest.software}, {manifest.software_digest}"),
            ("isolation", isolation),
            *((("seed", manifest.seed),) if is_index else ()),
            *((("amends", manifest.amends.manifest_digest), ("why", manifest.amends.why)) if manifest.amends else ()),
        ),
        limitations=(*analysis.limitations, *(analysis.notes if isinstance(analysis, CostIndexAnalysis) else ())),
        versions=versions,
    )
    return environment().get_template("tables.html.j2").render(page=page) + "\n"


def _index_tables(found: CostIndexAnalysis) -> tuple[Table, ...]:
    gates = tuple((gate.name, MARKS[gate.passed], gate.detail) for gate in found.gates)
    cells = tuple(
        (
            f"{cell.outcome} / {cell.stack}",
            f"{cell.successes} of {cell.instances}",
            str(cell.unknown),
            str(cell.attempts),
            _with_interval(cell.success_rate),
            cell.spend_shown,
            _cost(cell.successes, cell.cost_per_outcome),
            cell.latency.verified.shown,
        )
        for cell in found.cells
    )
    totals = tuple(
        (
            total.stack,
            f"{total.successes} of {total.instances}",
            str(total.unknown),
            str(total.attempts),
            _with_interval(total.success_rate),
            total.spend_shown,
            _cost(total.successes, total.cost_per_outcome),
        )
        for total in found.totals
    )
    head = ("Verified", "Unknown", "Attempts", "Success rate", "Settled spend", "Cost per verified outcome")
    return (
        Table("Gates of a qualified comparison", "Each must pass.", ("Gate", "", "What was found"), gates),
        Table(
            "Cells",
            f"In the order of their names, which is no ranking. Counted: {', '.join(found.counted)}.",
            ("Outcome / stack", *head, "Latency"),
            cells,
        ),
        Table("All outcomes", "Resampled within each outcome.", ("Stack", *head), totals),
        Table(
            "Exclusions",
            "Fixed before the first run.",
            ("", "What is left out, and why"),
            tuple((str(number), text) for number, text in enumerate(found.exclusions, start=1)),
        ),
        Table(
            "What a release needs beside a qualified comparison",
            "No file can stand for these.",
            ("", "Needed"),
            tuple((str(number), text) for number, text in enumerate(found.release_needs, start=1)),
        ),
    )


def _matrix_tables(found: OptimizerAnalysis) -> tuple[Table, ...]:
    gates = tuple(
        (f"{gate.name}: {condition.name}", MARKS[condition.passed], condition.detail)
        for gate in (found.frontier, found.funded, found.historical)
        for condition in gate.conditions
    )
    policies = tuple(_policy(policy) for policy in found.policies)
    strata = tuple(
        (f"{policy.policy} / {one.stratum}", f"{one.verified} of {one.runs}")
        for policy in found.policies
        for one in policy.strata
    )
    ladder = tuple(
        (f"{step.number} {step.name}", "shown" if step.shown else "not shown", step.detail) for step in found.ladder
    )
    return (
        Table("Gates", "Preregistered; what is undecided passes nothing.", ("Condition", "", "What was found"), gates),
        Table(
            "Policies",
            "A run is verified when verifier, outcome, observed model and receipt all say so.",
            ("Policy", "Role", "Verified", "Unproven", "Attempts", "Total cost", "Held out", "Held-out median cost"),
            policies,
        ),
        Table("Cells", "Verified runs of every policy in every stratum.", ("Policy / stratum", "Verified"), strata),
        Table("Evidence ladder", "What this round's data show.", ("Step", "", "Detail"), ladder),
        Table(
            "Costs",
            "What the costs of each executor are.",
            ("Executor", "Basis"),
            tuple(sorted(found.billing_basis.items())),
        ),
    )


def _policy(policy: Policy) -> tuple[str, ...]:
    held_out = policy.held_out
    return (
        policy.policy,
        policy.role,
        f"{policy.verified} of {policy.runs}",
        str(policy.unproven),
        str(policy.attempts),
        policy.costs.shown,
        f"{held_out.verified} of {held_out.runs}",
        held_out.costs.median or "unknown",
    )


def _cost(successes: int, estimate: CostEstimate) -> str:
    """Without a verified outcome there is no number, whatever was spent."""
    return _with_interval(estimate) if successes else UNDEFINED


def _with_interval(estimate: CostEstimate) -> str:
    if estimate.method is None:
        return f"{estimate.value_shown} ({estimate.reason})" if estimate.reason else estimate.value_shown
    return f"{estimate.value_shown} ({estimate.low_shown} to {estimate.high_shown})"
