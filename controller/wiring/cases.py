"""Anyone's numbers through our arithmetic: one usage record, or files of metering and statistics cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from controller.adapters.http_service import read_record
from controller.analyse.cases import run_cases as run_statistics
from controller.domain.rate_card import RateCard
from controller.errors import InvalidInput
from controller.meter import cases as metering
from controller.meter import price_usage
from controller.ports.named_files import read_named


def price_record(usage: Path, card: Path, dialect: str) -> dict[str, Any]:
    """Classes, units and exact cost. Raises UnpricedUsage, InvalidInput naming file and field."""
    return price_usage(dialect, _json(usage), read_record(card, RateCard)).model_dump(mode="json")


def metering_cases(source: Path) -> list[dict[str, Any]]:
    """Every priced case of the file, in its order."""
    document = _json(source)
    if not isinstance(document, dict):
        raise InvalidInput(f"{source}: must be an object with `cards` and `priced`")
    return metering.run_cases(document)


def statistics_cases(source: Path) -> dict[str, Any]:
    """The answer to every case of the file, by id."""
    try:
        data = read_named(source)
    except OSError as error:
        raise InvalidInput(f"{source}: {error.strerror}") from error
    return run_statistics(data, name=source.name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two equal ones Python would keep the last in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = sorted({key for key, _ in pairs if sum(other == key for other, _ in pairs) > 1})
        raise ValueError(f"key {repeated[0]!r} is given twice")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(read_named(path), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}: not readable as JSON: {error}") from error
