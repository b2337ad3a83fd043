"""From a plan's file, options and a pilot's dataset to what the round could show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controller.analyse.dataset import parse_dataset
from controller.analyse.pilot import merged, pilot_assumptions
from controller.analyse.planned import planned
from controller.analyse.planning import Planning, assumptions_of
from controller.analyse.planning_text import planning_text
from controller.errors import InvalidInput
from controller.freeze.yaml_strict import StrictYamlError, load_yaml
from controller.wiring.inputs import read_input

__all__ = ["plan_statistics", "planning_text"]

OPTIONS = "options"


def plan_statistics(source: Path | None, options: Mapping[str, Any], pilot: Path | None) -> Planning:
    """The figures of a planned round. `options` holds what was given beside the file, by field.

    Raises InvalidInput naming file and field, also for a field that is given twice.
    """
    given, name = ({}, OPTIONS) if source is None else (_fields(source), source.name)
    twice = sorted(given.keys() & options.keys())
    if twice:
        raise InvalidInput("\n".join(f"{name}: {field}: is given in the file and as an option" for field in twice))
    fields = {**given, **options}
    if pilot is None:
        return planned(assumptions_of(fields, name=name))
    if fields.get("protocol", "harness-round") != "harness-round":
        raise InvalidInput(f"{name}: pilot: only a harness-round is planned from a pilot")
    found, measured = pilot_assumptions(parse_dataset(read_input(pilot), name=pilot.name), name=pilot.name)
    return planned(assumptions_of(merged(fields, measured, name=name), name=name), found)


def _fields(source: Path) -> Mapping[str, Any]:
    try:
        value, repeated = load_yaml(read_input(source))
    except StrictYamlError as error:
        raise InvalidInput(f"{source.name}: {error}") from error
    if repeated:
        raise InvalidInput("\n".join(f"{source.name}: {fault}" for fault in repeated))
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{source.name}: must be a mapping of names to numbers")
    return value
