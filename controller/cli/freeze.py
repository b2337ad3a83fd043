"""`fairtrial freeze` and `authorize`: what is fixed, and what may be spent on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings
from controller.errors import InvalidInput


def freeze(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The round's directory; must not exist.", show_default=False)],
    amends: Annotated[
        Path | None, typer.Option(help="The round that this one takes the place of; it stays as it is.")
    ] = None,
    why: Annotated[str | None, typer.Option(help="With --amends: the reason, which is published.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a plan into a signed manifest: tasks, arms, images, prices, limits, seed and schedule, fixed from here on.

    Example: fairtrial freeze policies/rounds/demo.yaml --out rounds/demo-1
    Example: fairtrial freeze fixed.yaml --out rounds/two --amends rounds/one --why "task t3 is flaky"
    """
    from controller.wiring.freezing import amendment_of, freeze_plan

    if (amends is None) != (why is None):
        raise InvalidInput("amends, why: an amendment names the round that it amends and says why")
    amendment = amendment_of(amends, why) if amends and why else None
    frozen = freeze_plan(settings(), plan, out, amends=amendment)
    text = f"{out}: {len(frozen.manifest.schedule)} logical runs frozen as {frozen.digest}"
    render.result({"round": str(out), "manifest_digest": frozen.digest}, as_json=as_json, text=text)


def authorize(
    round_dir: Round,
    logical_runs: Annotated[int | None, typer.Option(help="Most logical runs that may be begun.")] = None,
    attempts: Annotated[int | None, typer.Option(help="Most attempts; default: all the protocol allows.")] = None,
    requests: Annotated[int | None, typer.Option(help="Most model requests.")] = None,
    usd: Annotated[str | None, typer.Option(help="Most US dollars, for example 25.00.")] = None,
    minutes: Annotated[int | None, typer.Option(help="Most minutes of all attempts' timeouts together.")] = None,
    valid_hours: Annotated[int, typer.Option(help="How long the grant holds.", min=1, max=24 * 90)] = 72,
    as_json: Json = False,
) -> None:
    """Sign a grant to spend on exactly this manifest. Without one, `start` refuses.

    Example: fairtrial authorize rounds/demo-1 --usd 5.00 --valid-hours 24
    """
    from controller.wiring.granting import full_caps, grant

    caps = full_caps(round_dir)
    chosen = {
        "logical_runs": logical_runs,
        "attempts": attempts,
        "requests": requests,
        "usd": usd,
        "timeout_minutes": minutes,
    }
    wanted = caps.model_dump() | {name: value for name, value in chosen.items() if value is not None}
    granted = grant(settings(), round_dir, wanted, valid_hours=valid_hours)
    text = f"authorized: {granted.caps.attempts} attempts, {granted.caps.requests} requests, ${granted.caps.usd}"
    render.result(granted.model_dump(mode="json"), as_json=as_json, text=text)
