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
    from controller.cli.control import conduct_quietly
    from controller.cli.progress import BuildProgress
    from controller.cli.release import finish
    from controller.wiring.demo import next_demo_directory, point_latest
    from controller.wiring.freezing import freeze_plan
    from controller.wiring.granting import grant
    from controller.wiring.machines import build_images
    from controller.wiring.tools import system_clock

    chosen = settings()
    clock = system_clock()
    render.note("fairtrial demo: a rehearsal. The model is scripted, so this measures nothing and costs nothing.")
    with BuildProgress(clock) as bar:
        build_images(chosen, bar.callback())
    round_dir = next_demo_directory(chosen)
    freeze_plan(chosen, plan or chosen.project / "policies" / "rounds" / "demo.yaml", round_dir)
    point_latest(chosen, round_dir)
    grant(chosen, round_dir, None, valid_hours=24)
    render.note(f"round frozen and authorized; after a stop, `fairtrial resume {round_dir} --release` goes on")
    conduct_quietly(round_dir)
    finish(round_dir, as_json)
