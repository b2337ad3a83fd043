"""From a settled round, or from anyone's rows, to an analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controller.analyse import analyse, analyse_bytes
from controller.analyse.cases import run_cases
from controller.analyse.dataset import parse_dataset
from controller.analyse.plan import plan_of_rows
from controller.conductor.recompute import HarnessRoundRecompute, plan_inputs
from controller.conductor.status import round_status
from controller.errors import InvalidInput
from controller.evidence.bundle import ANALYSIS, DATASET
from controller.protocols.harness_round.estimates import Analysis
from controller.publish.report import context_of_round, render_report
from controller.wiring.inputs import read_input
from controller.wiring.rounds import REPORT_FILE, OpenRound, read_round


def analyse_round(round_dir: Path) -> Analysis:
    """Write dataset.jsonl, analysis.json and report.html of a settled round. The same log gives the same bytes."""
    found = read_round(round_dir)
    recompute = HarnessRoundRecompute()
    status = round_status(found.manifest, found.journal.statements())
    if status.state != "closed":
        raise InvalidInput(f"round {status.round_id} is not settled", remedy=f"Run `fairtrial settle {round_dir}`.")
    dataset = recompute.dataset(found.manifest, found.digest, found.journal.statements())
    analysis, data = analyse_bytes(dataset, plan_inputs(found.manifest))
    for name, content in (
        (DATASET, dataset),
        (ANALYSIS, data),
        (REPORT_FILE, _report(found, dataset, analysis).encode()),
    ):
        (found.directory / name).write_bytes(content)
    return analysis


def _report(found: OpenRound, dataset: bytes, analysis: Analysis) -> str:
    return render_report(
        context_of_round(
            found.manifest,
            found.digest,
            dataset=dataset,
            analysis=analysis,
            statements=found.journal.statements(),
        )
    )


def analyse_dataset(source: Path, *, seed: str | None) -> Analysis:
    """Analyse anyone's dataset. Raises InvalidInput with line numbers."""
    rows = parse_dataset(read_input(source), name=source.name)
    return analyse(rows, plan_of_rows(rows, seed=seed))


def statistics_cases(source: Path) -> dict[str, Any]:
    """The answer to every case of the file, by id."""
    return run_cases(read_input(source), name=source.name)


def conclusion(found: Analysis) -> str:
    """The sentence a reader may quote, with its mark if the round measured nothing."""
    mark = "rehearsal, not a measurement: " if found.kind == "rehearsal" else ""
    return mark + found.headline
