"""`fairtrial dispute`: what somebody contests goes into the round's log, and is published with its next version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings


def dispute(
    round_dir: Round,
    by: Annotated[str, typer.Option("--by", help="Who disputes, as it will be published.")],
    text_file: Annotated[
        Path,
        typer.Option("--text-file", help="The text, published byte for byte; it may carry a signature.", exists=True),
    ],
    about: Annotated[str, typer.Option("--about", help="A logical run, an attempt, or `round`.")] = "round",
    as_json: Json = False,
) -> None:
    """File a public dispute, also after publication. It needs nobody's approval, and it can't be taken out again.

    Example: fairtrial dispute rounds/latest --by "J. Doe, maintainer of codex" --text-file dispute.txt
    """
    from controller.wiring.declaring import dispute_round

    filed = dispute_round(settings(), round_dir, about=about, by=by, text_file=text_file)
    text = f"filed as {filed.text_digest}; analyse and publish the round again to show it"
    render.result(filed.model_dump(mode="json"), as_json=as_json, text=text)
