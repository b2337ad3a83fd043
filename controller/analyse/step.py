"""Bytes to bytes: what the command line and the bundle check call. No effect but the parsing of its input."""

from __future__ import annotations

from controller.analyse.dataset import parse_dataset
from controller.analyse.plan import PlanInputs, plan_of_rows
from controller.analyse.rules import analyse
from controller.evidence.canonical import canonical
from controller.protocols.harness_round.estimates import Analysis


def analyse_bytes(
    dataset: bytes, plan: PlanInputs | None = None, *, name: str = "dataset.jsonl"
) -> tuple[Analysis, bytes]:
    """Analyse the bytes of a dataset; the result as a record and as canonical JSON.

    Without a plan, whatever the dataset names counts as predeclared. Raises InvalidInput naming file, line and field.
    """
    rows = parse_dataset(dataset, name=name)
    analysis = analyse(rows, plan or plan_of_rows(rows))
    return analysis, canonical(analysis)
