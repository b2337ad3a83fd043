"""`fairtrial verify`: one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings


def verify(
    task: Annotated[Path, typer.Option("--task", help="The task's directory.", show_default=False)],
    patch: Annotated[Path, typer.Option("--patch", help="A patch in git's format.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Judge one patch in a fresh machine without a network. A verdict of "failed" is a result, not an error.

    Example: fairtrial verify --task corpus/inflection-ordinals --patch fix.patch --json
    """
    from controller.wiring.tasks import verify_patch

    verdict = verify_patch(settings(), task, patch)
    lines = [f"  {'ok ' if gate.passed else 'NO '} {gate.name}: {gate.detail}" for gate in verdict.gates]
    head = "passed" if verdict.passed else "failed"
    render.result(verdict.model_dump(mode="json"), as_json=as_json, text="\n".join([head, *lines]))
