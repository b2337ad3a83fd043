"""A dataset in the forms that other tools read."""

from __future__ import annotations

from pathlib import Path

from controller.analyse.dataset import parse_dataset
from controller.analyse.parquet import parquet_tables
from controller.errors import InvalidInput
from controller.evidence.bundle import DATASET
from controller.wiring.inputs import read_input


def export_parquet(source: Path, out: Path) -> tuple[Path, ...]:
    """Write the tables of a dataset, or of an analysed round, into a directory; their paths.

    Raises InvalidInput with line numbers for a dataset that is not sound, and for files that are there already.
    """
    dataset = source / DATASET if source.is_dir() else source
    rows = parse_dataset(read_input(dataset), name=dataset.name)
    tables = {out / name: table for name, table in parquet_tables(rows).items()}
    present = [str(path) for path in tables if path.exists()]
    if present:
        raise InvalidInput(f"{', '.join(present)}: exists", remedy="Name a new directory; nothing was overwritten.")
    out.mkdir(parents=True, exist_ok=True)
    for path, table in tables.items():
        path.write_bytes(table)
    return tuple(tables)
