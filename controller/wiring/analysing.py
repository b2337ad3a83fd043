"""From a settled round, or from anyone's rows, to an analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controller.analyse import analyse
from controller.analyse.cases import run_cases
from controller.analyse.dataset import parse_dataset
from controller.analyse.frozen import RoundAnalysis, analyse_frozen
from controller.analyse.plan import plan_of_rows
from controller.conductor.dataset import dataset_rows
from controller.conductor.status import round_status
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.evidence.bundle import ANALYSIS, DATASET
from controller.evidence.canonical import lines
from controller.protocols.harness_round.estimates import Analysis
from controller.publish.report import context_of_round, render_report
from controller.publish.report_context import Version, weakest_isolation
from controller.publish.report_tables import render_tables
from controller.wiring.inputs import read_input
from controller.wiring.rounds import REPORT_FILE, OpenRound, read_round


def analyse_round(round_dir: Path, *, protocol: str | None = None) -> RoundAnalysis:
    """Write dataset.jsonl, analysis.json and report.html of a settled round. The same log gives the same bytes.

    Raises InvalidInput for a round that is not settled, or of another protocol than the one that is asked for.
    """
    found = read_round(round_dir)
    if protocol not in (None, found.manifest.protocol):
        raise InvalidInput(f"{round_dir}: a round of {found.manifest.protocol}, which no other protocol may analyse")
    statements = found.journal.statements()
    status = round_status(found.manifest, statements)
    if status.state != "closed":
        raise InvalidInput(f"round {status.round_id} is not settled", remedy=f"Run `fairtrial settle {round_dir}`.")
    dataset = lines(dataset_rows(found.manifest, found.digest, statements))
    analysis, data = analyse_frozen(found.manifest, dataset)
    for name, content in (
        (DATASET, dataset),
        (ANALYSIS, data),
        (REPORT_FILE, report_of(found, dataset, analysis).encode()),
    ):
        (found.directory / name).write_bytes(content)
    return analysis


def report_of(found: OpenRound, dataset: bytes, analysis: RoundAnalysis, *, versions: tuple[Version, ...] = ()) -> str:
    """The round's report, with the versions of its release as far as there are any."""
    if not isinstance(analysis, Analysis):
        return render_tables(
            found.manifest,
            found.digest,
            sha256_digest(dataset),
            analysis,
            isolation=weakest_isolation(found.journal.statements()),
            versions=versions,
        )
    return render_report(
        context_of_round(
            found.manifest,
            found.digest,
            dataset=dataset,
            analysis=analysis,
            statements=found.journal.statements(),
            versions=versions,
        )
    )


def analyse_dataset(source: Path, *, seed: str | None) -> Analysis:
    """Analyse anyone's dataset. Raises InvalidInput with line numbers."""
    rows = parse_dataset(read_input(source), name=source.name)
    return analyse(rows, plan_of_rows(rows, seed=seed))


def statistics_cases(source: Path) -> dict[str, Any]:
    """The answer to every case of the file, by id."""
    return run_cases(read_input(source), name=source.name)


def conclusion(found: RoundAnalysis) -> str:
    """The sentence a reader may quote, with its mark if the round measured nothing."""
    if not isinstance(found, Analysis):
        return found.conclusion
    mark = "rehearsal, not a measurement: " if found.kind == "rehearsal" else ""
    return mark + found.headline
