"""`fairtrial timestamp`: a time authority's word (RFC 3161) that a round's log existed. Nothing is sent by us."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings

app = typer.Typer(no_args_is_help=True, help="A time authority's word (RFC 3161) that a round's log existed.")


@app.command()
def request(round_dir: Round, as_json: Json = False) -> None:
    """Sign the log as it is and write a timestamp request for it, to be sent to an authority of your choice.

    Example: fairtrial timestamp request rounds/latest
    """
    from controller.wiring.timestamping import write_request

    path = write_request(settings(), round_dir)
    text = f"{path}\nsend it with: curl -H 'Content-Type: application/timestamp-query' --data-binary @{path} URL"
    render.result({"request": str(path)}, as_json=as_json, text=text)


@app.command()
def attach(
    round_dir: Round,
    response: Annotated[Path, typer.Argument(help="The authority's response.", show_default=False)],
    authority: Annotated[Path, typer.Option("--tsa", help="The authority's certificates, PEM.", exists=True)],
    as_json: Json = False,
) -> None:
    """Keep a response with the round, if the authority signed it for one of our requests.

    Example: fairtrial timestamp attach rounds/latest response.tsr --tsa tsa.pem
    """
    from controller.wiring.timestamping import attach_response

    kept, at = attach_response(round_dir, response, authority)
    render.result({"kept": str(kept), "at": at}, as_json=as_json, text=f"{kept}: the log existed at {at}")
