"""A dataset and its analysis in the forms that other tools read, and that people look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.analyse.dataset import parse_dataset
from controller.analyse.parquet import parquet_tables
from controller.domain.dataset import LogicalRunRow
from controller.domain.record import Record
from controller.errors import InvalidInput
from controller.evidence.bundle import DATASET
from controller.protocols.harness_round.estimates import Analysis
from controller.wiring.inputs import read_input


def export_parquet(source: Path, out: Path) -> tuple[Path, ...]:
    """Write the tables of a dataset, or of an analysed round, into a directory; their paths.

    Raises InvalidInput with line numbers for a dataset that is not sound, and for files that are there already.
    """
    return _write_new(out, parquet_tables(_rows(source)))


def export_figures(found: Record, source: Path, out: Path) -> tuple[Path, ...]:
    """Write the figures of an analysis of that dataset or round, as SVG and PNG, into a directory; their paths.

    Raises InvalidInput for the analysis of another protocol, and for files that are there already; MissingProgram when
    the font is not installed.
    """
    from controller.publish.figure_files import figure_sheets
    from controller.publish.figure_png import figure_files

    if not isinstance(found, Analysis):
        raise InvalidInput("figures: only of a harness-round")
    return _write_new(out, figure_files(figure_sheets(found, _rows(source))))


def _rows(source: Path) -> tuple[LogicalRunRow, ...]:
    dataset = source / DATASET if source.is_dir() else source
    return tuple(parse_dataset(read_input(dataset), name=dataset.name))


def _write_new(out: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    paths = {out / name: data for name, data in files.items()}
    present = [path.name for path in paths if path.exists()]
    if present:
        raise InvalidInput(
            f"{out}: exists already: {', '.join(present)}", remedy="Name a new directory; nothing was overwritten."
        )
    out.mkdir(parents=True, exist_ok=True)
    for path, data in paths.items():
        path.write_bytes(data)
    return tuple(paths)
