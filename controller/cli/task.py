"""`fairtrial task check`: qualify tasks before they are frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings
from controller.errors import InvalidTask

app = typer.Typer(no_args_is_help=True, help="Qualify tasks.")


@app.command()
def check(
    directories: Annotated[list[Path], typer.Argument(help="Task directories, for example corpus/*.")],
    as_json: Json = False,
) -> None:
    """Prove that a task is sound: the gold patch passes three times, the empty patch fails three times.

    Example: fairtrial task check corpus/*
    """
    from controller.wiring.tasks import check_task

    reports = [check_task(settings(), directory) for directory in directories]
    lines = [f"{'sound  ' if r.is_fit else 'UNSOUND'} {r.task}  {'; '.join(r.faults)}".rstrip() for r in reports]
    render.result([r.model_dump(mode="json") for r in reports], as_json=as_json, text="\n".join(lines))
    bad = [report.task for report in reports if not report.is_fit]
    if bad:
        raise InvalidTask(f"{len(bad)} of {len(reports)} tasks are unsound: {', '.join(bad)}")
