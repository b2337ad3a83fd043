"""`fairtrial start`, `resume`, `stop` and `resolve`: conduct a round, or intervene in one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings

if TYPE_CHECKING:
    from controller.conductor.status import RoundStatus


Release = Annotated[bool, typer.Option("--release", help="Then settle, analyse, publish and check as well.")]


def start(round_dir: Round, release: Release = False, as_json: Json = False) -> None:
    """Conduct a frozen and authorized round to its end.

    Example: fairtrial start rounds/demo-1
    """
    conduct(round_dir, release, as_json)


def resume(round_dir: Round, release: Release = False, as_json: Json = False) -> None:
    """Take up a round whose controller was stopped or killed; nothing done is done again.

    Example: fairtrial resume rounds/latest
    """
    conduct(round_dir, release, as_json)


def conduct(round_dir: Path, release: bool, as_json: bool) -> None:
    """Both verbs are one act: whatever is unfinished is worked on."""
    from controller.cli.release import finish
    from controller.cli.status import describe

    found = conduct_quietly(round_dir)
    if release:
        finish(round_dir, as_json)
        return
    render.result(found.model_dump(mode="json"), as_json=as_json, text=describe(found))
    if found.state == "finished":
        render.note(f"next: fairtrial settle {round_dir}, then analyse, publish and check")


def conduct_quietly(round_dir: Path) -> RoundStatus:
    """Conduct the round with a progress bar, and say how it stands."""
    from controller.cli.progress import RoundProgress
    from controller.conductor import rounds
    from controller.wiring.conducting import conducting

    chosen = settings()
    with conducting(chosen, round_dir) as world, RoundProgress(world.clock) as bar:
        return rounds.start(world, fleet_size=chosen.fleet_size, on_progress=bar.show)


def stop(
    round_dir: Round,
    note: Annotated[str, typer.Option(help="Why, for the log; needed with --event.")] = "",
    event: Annotated[
        Literal["health-degradation", "sealed-task-exposure"] | None,
        typer.Option(help="Declare a predeclared event that only a person can see. The round can't be resumed."),
    ] = None,
) -> None:
    """Ask a round to stop: attempts in flight end normally, no new one starts.

    Example: fairtrial stop rounds/latest --note "maintenance tonight"
    """
    from controller.wiring.declaring import stop_round

    stop_round(settings(), round_dir, note, event)
    rest = "settle and publish it as it is" if event else "`fairtrial resume` goes on"
    render.result(None, as_json=False, text=f"The round stops after the attempts in flight; {rest}.")


def resolve(
    round_dir: Round,
    run: Annotated[str, typer.Argument(help="The halted logical run, as `fairtrial status` names it.")],
    decision: Annotated[
        Literal["lost", "failed"],
        typer.Option("--as", help="lost: an infrastructure fault, may be tried again; failed: the run is over."),
    ],
    note: Annotated[str, typer.Option(help="Why, for the log.")] = "no reason given",
) -> None:
    """Decide what a halted cell's attempt counts as. Its money counts in full either way, and the act is in the log.

    Example: fairtrial resolve rounds/latest inflection-ordinals.codex.r1 --as lost --note "power cut"
    """
    from controller.conductor import rounds
    from controller.wiring.rounds import read_round
    from controller.wiring.tools import system_clock

    found = read_round(round_dir)
    rounds.resolve(found.journal, system_clock(), run, decision, note)
    render.result(
        None, as_json=False, text=f"{run} is resolved as {decision}; go on with `fairtrial resume {round_dir}`."
    )
