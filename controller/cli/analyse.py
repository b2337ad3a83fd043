"""`fairtrial analyse`: what data say, and what a round could say before money is spent on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from controller.cli import render
from controller.cli.options import Json
from controller.errors import InvalidInput

if TYPE_CHECKING:
    from controller.domain.record import Record

Protocol = Literal["harness-round", "cost-index", "optimizer-matrix"]
Source = Annotated[
    Path | None,
    typer.Argument(help="A settled round's directory, a dataset in JSON lines, a case file or a plan.", exists=True),
]
Parquet = Annotated[Path | None, typer.Option(help="Also write the dataset as Parquet tables into this directory.")]
Figures = Annotated[Path | None, typer.Option(help="Also draw a harness-round as SVG and PNG into this directory.")]
_PLANNED: Final = "With --plan: "


def analyse(
    source: Source = None,
    protocol: Annotated[
        Protocol | None, typer.Option(help="Whose rules decide, or what is planned; harness-round unless named.")
    ] = None,
    frozen: Annotated[
        Path | None, typer.Option(help="The frozen plan of a cost-index or optimizer-matrix.", exists=True)
    ] = None,
    seed: Annotated[str | None, typer.Option(help="64 hex digits; for a dataset file only.")] = None,
    parquet: Parquet = None,
    figures: Figures = None,
    cases: Annotated[bool, typer.Option("--cases", help="SOURCE is a case file: answer it by id.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="What a planned round could show; SOURCE, if any, is YAML or JSON.")
    ] = False,
    pilot: Annotated[Path | None, typer.Option(help=f"{_PLANNED}a dataset to measure spreads on.", exists=True)] = None,
    tasks: Annotated[int | None, typer.Option(help=f"{_PLANNED}how many.")] = None,
    arms: Annotated[int | None, typer.Option(help=f"{_PLANNED}how many.")] = None,
    repeats: Annotated[int | None, typer.Option(help=f"{_PLANNED}how many.")] = None,
    success_rate: Annotated[str | None, typer.Option(help=f"{_PLANNED}assumed, as 0.6.")] = None,
    difference_sd: Annotated[
        list[str] | None, typer.Option(help=f"{_PLANNED}assumed spread of per-task differences, as 0.27.")
    ] = None,
    cost_log_sd: Annotated[str | None, typer.Option(help=f"{_PLANNED}of log task cost ratios, as 1.07.")] = None,
    time_log_sd: Annotated[str | None, typer.Option(help=f"{_PLANNED}of the log p90 ratio, per task.")] = None,
    lead_points: Annotated[str | None, typer.Option(help=f"{_PLANNED}true success lead of the cheaper arm.")] = None,
    as_json: Json = False,
) -> None:
    """Estimates, intervals and decisions. For a round, also writes dataset.jsonl and analysis.json into it.

    Example: fairtrial analyse rounds/latest --json
    Example: fairtrial analyse cohort.jsonl --protocol cost-index --frozen plan.json --json
    Example: fairtrial analyse dataset.jsonl --seed HEX --parquet tables --json
    Example: fairtrial analyse rounds/latest --figures figures
    Example: fairtrial analyse --plan --tasks 100 --arms 12
    """
    from controller.wiring.analysing import statistics_cases
    from controller.wiring.planning import plan_statistics, planning_text

    options: dict[str, object] = {
        "tasks": tasks,
        "arms": arms,
        "repeats": repeats,
        "success_rate": success_rate,
        "difference_sd": difference_sd or None,
        "cost_log_sd": cost_log_sd,
        "time_log_sd": time_log_sd,
        "lead_points": lead_points,
    }
    of_data: dict[str, object] = {"frozen": frozen, "seed": seed, "parquet": parquet, "figures": figures}
    if plan:
        _refuse({**of_data, "cases": cases or None}, "not with --plan")
        given = {field: value for field, value in {**options, "protocol": protocol}.items() if value is not None}
        report = plan_statistics(source, given, pilot)
        render.result(report.model_dump(mode="json"), as_json=as_json, text=planning_text(report))
        return
    _refuse({**options, "pilot": pilot}, "only with --plan")
    if source is None:
        raise InvalidInput("analyse needs a round's directory or a dataset", remedy="See its --help.")
    if cases:
        _refuse({**of_data, "protocol": protocol}, "not with --cases")
        render.result(statistics_cases(source), as_json=True, text="")
        return
    if figures is not None and protocol not in (None, "harness-round"):
        raise InvalidInput("figures: only of a harness-round's dataset or round")
    record, text = _analysed(source, protocol, frozen, seed)
    if parquet or figures:
        _export(record, source, parquet, figures)
    render.result(record.model_dump(mode="json"), as_json=as_json, text=text)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Raises InvalidInput for the options that were given: they would have no effect."""
    idle = sorted(name for name, value in options.items() if value is not None)
    if idle:
        raise InvalidInput(f"{', '.join(idle)}: {why}")


def _analysed(source: Path, protocol: Protocol | None, frozen: Path | None, seed: str | None) -> tuple[Record, str]:
    """The analysis under the protocol's rules, as a record and as text."""
    from controller.wiring.analysing import analyse_dataset, analyse_round, conclusion
    from controller.wiring.protocols import analyse_protocol, describe

    if source.is_dir():
        _refuse({"frozen": frozen, "seed": seed}, "a round is analysed by the plan and the seed in its manifest")
        analysis = analyse_round(source, protocol=protocol)
        return analysis, describe(analysis)
    if protocol == "cost-index" or protocol == "optimizer-matrix":
        return analyse_protocol(source, protocol, seed=seed, frozen=frozen)
    if frozen is not None:
        raise InvalidInput("frozen: a harness-round has its plan in the manifest of its round")
    found = analyse_dataset(source, seed=seed)
    return found, conclusion(found)


def _export(record: Record, source: Path, parquet: Path | None, figures: Path | None) -> None:
    """Write what was asked for beside the result."""
    from controller.wiring.exports import export_figures, export_parquet

    written = export_parquet(source, parquet) if parquet else ()
    written += export_figures(record, source, figures) if figures else ()
    for path in written:
        render.note(f"wrote {path}")
