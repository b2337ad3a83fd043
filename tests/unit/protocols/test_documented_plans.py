"""The plans that the methodologies show are plans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller.domain.json_files import parse_record
from controller.domain.record import Record
from controller.protocols.cost_index.plan import CostIndexPlan
from controller.protocols.optimizer_matrix.plan import OptimizerPlan

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "kind"),
    [("methodology-cost-index.md", CostIndexPlan), ("methodology-optimizer-matrix.md", OptimizerPlan)],
)
def test_every_field_of_a_frozen_plan_is_shown_and_the_example_reads_as_one(page: str, kind: type[Record]) -> None:
    text = (DOCS / page).read_text()
    block = re.search(r"^    (\{\"schema_version\".*?\})\n\n", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    plan = parse_record(block[1].replace("<64 hex>", "0" * 64).encode(), kind, page)
    assert plan.model_fields_set == set(kind.model_fields)
