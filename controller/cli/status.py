"""`fairtrial status` and `watch`: how a round stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.cli import render
from controller.cli.options import Json, Round

if TYPE_CHECKING:
    from controller.conductor.status import RoundStatus

WATCH_SECONDS = 1.0


def status(round_dir: Round, as_json: Json = False) -> None:
    """Show how a round stands: every logical run, what waits for a person, and what was spent.

    Example: fairtrial status rounds/latest
    """
    from controller.wiring.rounds import read_status

    found = read_status(round_dir)
    render.result(found.model_dump(mode="json"), as_json=as_json, text=describe(found))


def watch(round_dir: Round) -> None:
    """Follow a round until it ends; leaving the watch does not touch the round.

    Example: fairtrial watch rounds/latest
    """
    from controller.cli.progress import RoundProgress
    from controller.wiring.rounds import read_status
    from controller.wiring.tools import system_clock

    clock = system_clock()
    with RoundProgress(clock) as bar:
        while True:
            found = read_status(round_dir)
            bar.show(found)
            if found.state not in ("frozen", "running"):
                break
            clock.sleep(WATCH_SECONDS)
    render.result(None, as_json=False, text=describe(found))


def describe(found: RoundStatus) -> str:
    """The status as text."""
    spent = f"${found.usd}" if found.usd is not None else "unknown"
    counts = f"{found.scored} of {found.runs} logical runs scored, {found.attempts} attempts"
    lines = [f"{found.round_id}: {found.state}, {counts}, spent {spent}"]
    if found.stopped_by:
        lines.append(f"stopped by {found.stopped_by}")
    lines += [f"  {cell.state:8} {cell.run}  {cell.detail}".rstrip() for cell in found.cells]
    return "\n".join(lines)
