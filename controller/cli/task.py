"""`fairtrial task check`, `key` and `seal`: make tasks fit to be frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from controller.cli import render
from controller.cli.options import Json, settings
from controller.errors import InvalidTask

app = typer.Typer(no_args_is_help=True, help="Qualify and seal tasks.")


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


@app.command()
def key(
    part: Annotated[Literal["runner", "verifier", "curator"], typer.Argument(help="What it shall open.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The private key's file; default: where this machine looks for it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key that opens one part of sealed tasks. Give its public half (.pub.json) to the curators.

    Example: fairtrial task key verifier
    """
    from controller.wiring.sealing import make_key

    made = make_key(settings(), part, out)
    render.result(made.model_dump(mode="json"), as_json=as_json, text=f"{part} key {made.id}")


@app.command()
def seal(
    directories: Annotated[list[Path], typer.Argument(help="Task directories that are not public.")],
    out: Annotated[Path, typer.Option("--out", help="The store to write; must not exist.", show_default=False)],
    to: Annotated[list[Path], typer.Option("--to", help="A recipient's public key; one for each part at least.")],
    as_json: Json = False,
) -> None:
    """Encrypt tasks for those who may open them. What is left readable is what a manifest publishes.

    Example: fairtrial task seal hidden/* --to curator.pub.json --to runner.pub.json --to verifier.pub.json --out store
    """
    from controller.wiring.sealing import seal_tasks

    sealed = seal_tasks(settings(), directories, to, out)
    text = "\n".join(
        [*(f"{task.commitment}  {task.entry.id}" for task in sealed), f"{out}: {len(sealed)} sealed tasks"]
    )
    render.result([task.entry.model_dump(mode="json") for task in sealed], as_json=as_json, text=text)
