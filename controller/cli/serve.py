"""`fairtrial serve`: the long-running services of a round, started by the conductor or by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Run one of a round's services in the foreground.")
Config = Annotated[
    Path, typer.Option("--config", help="The service's JSON configuration.", exists=True, dir_okay=False)
]


@app.command()
def meter(config: Config) -> None:
    """The metering proxy: the only holder of provider keys, and the only witness of cost.

    Example: fairtrial serve meter --config meter.json
    """
    from controller.proxy import serve

    serve(config)


@app.command()
def results(config: Config) -> None:
    """The result API: write-once uploads under per-attempt grants.

    Example: fairtrial serve results --config results.json
    """
    from controller.api import serve

    serve(config)


@app.command()
def rehearsal(config: Config) -> None:
    """The scripted model that rehearsal rounds talk to.

    Example: fairtrial serve rehearsal --config rehearsal.json
    """
    from controller.adapters.rehearsal import serve

    serve(config)
