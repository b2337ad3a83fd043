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

    chosen = settings()
    clock = wiring.system_clock()
    render.note("fairtrial demo: a rehearsal. The model is scripted, so this measures nothing and costs nothing.")
    with BuildProgress(clock) as bar:
        wiring.image_store(chosen).build(bar.callback())
    round_dir = wiring.next_demo_directory(chosen)
    wiring.freeze_plan(chosen, plan or chosen.project / "policies" / "rounds" / "demo.yaml", round_dir)
    wiring.point_latest(chosen, round_dir)
    wiring.grant(chosen, round_dir, None, valid_hours=24)
    render.note(f"round frozen and authorized in {round_dir}; `fairtrial resume {round_dir}` goes on after a stop")
    conduct_quietly(round_dir)
    finish(round_dir, as_json)


def finish(round_dir: Path, as_json: bool) -> None:
    """Settle, analyse, publish and check a conducted round; print where the report is."""
    from controller import wiring

    chosen = settings()
    wiring.settle_round(chosen, round_dir)
    found = wiring.analyse_round(chosen, round_dir)
    bundle = wiring.publish_round(chosen, round_dir, round_dir / "release")
    wiring.point_bundle(round_dir, bundle)
    checked = wiring.check_bundle(chosen, bundle, None)
    report = round_dir / "report.html"
    render.note(wiring.conclusion(found))
    render.note(wiring.describe_check(checked).splitlines()[-1])
    render.result(
        {"round": str(round_dir), "report": str(report), "bundle": str(bundle), "checked": True},
        as_json=as_json,
        text=f"report: {report}",
    )
