"""Numbers in sentences."""

from __future__ import annotations

import pytest

from controller.domain.words import numbered


@pytest.mark.parametrize(("count", "expected"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (1_234, "1,234 tasks")])
def test_one_is_singular(count: int, expected: str) -> None:
    assert numbered(count, "task") == expected
