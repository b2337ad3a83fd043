"""`fairtrial reveal`: disclose the sealed tasks of a retired round, or check what was disclosed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings
from controller.errors import InvalidInput


def reveal(
    source: Annotated[Path, typer.Argument(help="The round; with --check, its bundle.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Where the disclosure goes; must not exist.")] = None,
    curator_key: Annotated[Path | None, typer.Option("--curator-key", help="The private key of a curator.")] = None,
    following: Annotated[
        Path | None, typer.Option("--next", help="The next round, once it has started; with --check, its bundle.")
    ] = None,
    checked: Annotated[Path | None, typer.Option("--check", help="Check this disclosure, make none.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="With --check: the publisher's keys, to pin them.")] = None,
    as_json: Json = False,
) -> None:
    """Disclose sealed tasks 90 days after their round was closed, or once the next round has started.

    Example: fairtrial reveal rounds/first --out disclosed --curator-key curator.pem
    """
    from controller.wiring.reveal import check_disclosure, reveal_round
    from controller.wiring.tools import system_clock

    if checked is not None:
        if out or curator_key:
            raise InvalidInput("--check goes with a bundle, --key and --next only")
        found = check_disclosure(settings(), checked, source, key=key, next_bundle=following)
        head = (
            f"accepted: {found.tasks} tasks of round {found.round_id} open their commitments, {found.bases} with base"
        )
        text = "\n".join([head, *(f"not proven here: {what}" for what in found.unproven)])
        render.result(found.model_dump(mode="json"), as_json=as_json, text=text)
        return
    if out is None or curator_key is None or key:
        raise InvalidInput("give --out and --curator-key to disclose, or --check to check")
    made = reveal_round(settings(), source, out, curator_key=curator_key, next_round=following, clock=system_clock())
    withheld = [task.opening.id for task in made.tasks if not task.base_disclosed]
    text = f"{out}: {len(made.tasks)} tasks disclosed" + (
        f"; base withheld of {', '.join(withheld)}" if withheld else ""
    )
    render.result(made.model_dump(mode="json"), as_json=as_json, text=text)
