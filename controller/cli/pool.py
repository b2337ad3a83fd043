"""`fairtrial pool`: the machines we own, and the reaper."""

from __future__ import annotations

from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings

app = typer.Typer(no_args_is_help=True, help="List the machines we own, and destroy forgotten ones.")


@app.command("list")
def list_machines(as_json: Json = False) -> None:
    """Show every machine of the pool, dead remains included.

    Example: fairtrial pool list --json
    """
    from controller.wiring.machines import make_pool

    facts = make_pool(settings()).inventory()
    lines = [f"{f.name}  {f.role.value}  generation {f.generation}  {'alive' if f.alive else 'dead'}" for f in facts]
    render.result(
        [fact.model_dump(mode="json") for fact in facts], as_json=as_json, text="\n".join(lines) or "no machines"
    )


@app.command()
def reap(
    everything: Annotated[bool, typer.Option("--all", help="Destroy machines that have not expired, too.")] = False,
    as_json: Json = False,
) -> None:
    """Destroy whatever has expired or is dead but not cleaned up, whoever owns it.

    Example: fairtrial pool reap
    """
    from controller.wiring.machines import make_pool
    from controller.wiring.tools import system_clock

    pool = make_pool(settings())
    receipts = list(pool.reap(at=system_clock().now()))
    if everything:
        receipts += [pool.destroy(f.name, generation=f.generation) for f in pool.inventory()]
    lines = [f"{receipt.name}: {receipt.proof}" for receipt in receipts]
    render.result(
        [receipt.model_dump(mode="json") for receipt in receipts],
        as_json=as_json,
        text="\n".join(lines) or "nothing to destroy",
    )
