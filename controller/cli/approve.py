"""`fairtrial approve`: a person's word for one exact report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings


def approve(
    round_dir: Annotated[Path | None, typer.Argument(help="The round's directory.", show_default=False)] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Your key, which a passphrase protects.")] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", help="Make a key for a person here; its public half goes to stdout.")
    ] = None,
    passphrase_fd: Annotated[
        int | None, typer.Option("--passphrase-fd", help="Read the passphrase from this file descriptor.", min=0)
    ] = None,
    as_json: Json = False,
) -> None:
    """Approve a round's report as it lies there, with manifest, dataset and analysis; another byte is not approved.

    Example: fairtrial approve rounds/october --key anna.pem
    """
    from controller.adapters.person_key import read_passphrase
    from controller.errors import InvalidInput
    from controller.wiring.approving import approve_round, make_key

    if new_key is not None and round_dir is None and key is None:
        ring = make_key(new_key, read_passphrase(passphrase_fd, twice=True))
        render.result(ring.model_dump(mode="json"), as_json=True, text="")
        return
    if round_dir is None or key is None or new_key is not None:
        raise InvalidInput("name a round and --key, or only --new-key", remedy="See `fairtrial approve --help`.")
    found = approve_round(settings(), round_dir, key, read_passphrase(passphrase_fd))
    text = f"approved: {round_dir / 'report.html'}, {found.approved.report_digest}"
    render.result(found.model_dump(mode="json"), as_json=as_json, text=text)
