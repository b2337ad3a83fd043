"""Options that several verbs share, spelled once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from controller.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document on stdout.")]
Round = Annotated[Path, typer.Argument(help="The round's directory, for example rounds/latest.", show_default=False)]


def settings() -> Settings:
    """The settings of this machine and environment."""
    from controller.settings import read_settings

    return read_settings(os.environ)
