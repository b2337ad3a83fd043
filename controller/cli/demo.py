"""`fairtrial demo`: a whole rehearsal round, from nothing to a checked bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, settings


def demo(
    plan: Annotated[Path | None, typer.Option(help="Another rehearsal plan than the demo's.")] = None,
    as_json: Json = False,
) -> None:
    """Run a rehearsal round end to end: real harnesses and machines, a scripted model, nothing spent.

    Example: fairtrial demo
    """
    from controller import wiring
    from controller.cli.control import conduct_quietly
    from controller.cli.progress import BuildProgress
    from controller.cli.release import finish

    chosen = settings()
    clock = wiring.system_clock()
    render.note("fairtrial demo: a rehearsal. The model is scripted, so this measures nothing and costs nothing.")
    with BuildProgress(clock) as bar:
        wiring.build_images(chosen, bar.callback())
    round_dir = wiring.next_demo_directory(chosen)
    wiring.freeze_plan(chosen, plan or chosen.project / "policies" / "rounds" / "demo.yaml", round_dir)
    wiring.point_latest(chosen, round_dir)
    wiring.grant(chosen, round_dir, None, valid_hours=24)
    render.note(f"round frozen and authorized; after a stop, `fairtrial resume {round_dir} --release` goes on")
    conduct_quietly(round_dir)
    finish(round_dir, as_json)
