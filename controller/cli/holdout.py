"""`fairtrial holdout commit`, `select`, `check`: let public randomness choose, so that nobody can."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings

app = typer.Typer(no_args_is_help=True, help="Select a holdout by public randomness.")


@app.command()
def commit(
    round_dir: Round,
    out: Annotated[Path, typer.Option("--out", help="The request to write; publish it at once.", show_default=False)],
    chain: Annotated[Literal["default", "quicknet"], typer.Option(help="The network of drand.")] = "default",
    as_json: Json = False,
) -> None:
    """Commit to a beacon at least 24 hours ahead, which will select one holdout of the manifest. Once per round.

    Example: fairtrial holdout commit rounds/matrix --chain default --out request.dsse.json
    """
    from controller.domain.beacon import CHAINS
    from controller.domain.instant import instant_text
    from controller.wiring.holdout import commit_holdout
    from controller.wiring.tools import system_clock

    request = commit_holdout(settings(), round_dir, chain, out, system_clock())
    due = instant_text(CHAINS[chain].due_at(request.beacon_round))
    text = f"{out}: one of {len(request.candidates)} holdouts by round {request.beacon_round} of {chain}, due {due}"
    render.result(request.model_dump(mode="json"), as_json=as_json, text=text)
    render.note(f"publish {out} before {due}, where others will have seen it: a commitment nobody saw binds nobody")


@app.command()
def select(
    request: Annotated[Path, typer.Argument(help="The request that `commit` wrote.", exists=True)],
    out: Annotated[Path, typer.Option("--out", help="The signed record to write.", show_default=False)],
    relay: Annotated[
        list[str] | None,
        typer.Option("--relay", help="Ask these instead: three or more, https://HOST[:PORT], no two in one domain."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch the committed beacon from three relays, verify it, and write the selection and a candidate freeze.

    Example: fairtrial holdout select request.dsse.json --out selection.dsse.json
    """
    from controller.adapters.relay_http import HttpRelays, load_relays
    from controller.evidence.holdout import ANSWER_BYTES_MAX
    from controller.wiring.holdout import select_holdout
    from controller.wiring.tools import system_clock

    chosen = settings()
    relays = relay or load_relays(chosen.relays_file)
    made = select_holdout(chosen, request, out, relays, system_clock(), HttpRelays(bytes_max=ANSWER_BYTES_MAX))
    for fault in made.faults:
        render.note(f"not counted: {fault}")
    text = f"{out}: {made.candidate.selection.scenario}\nfor review, then freeze: {made.candidate_path}"
    render.result(made.candidate.model_dump(mode="json"), as_json=as_json, text=text)


@app.command()
def check(
    record: Annotated[Path, typer.Argument(help="The record that `select` wrote.", exists=True)],
    bundle: Annotated[Path | None, typer.Option("--bundle", help="A bundle of the round.", exists=True)] = None,
    manifest: Annotated[Path | None, typer.Option("--manifest", help="Its manifest.json alone.", exists=True)] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The publisher's public keys, to pin them.")] = None,
    as_json: Json = False,
) -> None:
    """Check a selection offline: signatures, candidates, computed round, beacon, index. Trusts nothing in it.

    Example: fairtrial holdout check selection.dsse.json --manifest rounds/matrix/manifest.json
    """
    from controller.wiring.holdout import check_holdout

    report = check_holdout(settings(), record, manifest=manifest, bundle=bundle, key=key)
    lines = [f"ok  {step.number} {step.name}: {step.detail}" for step in report.steps]
    text = "\n".join([*lines, f"accepted; {report.trust_text}"])
    render.result(report.model_dump(mode="json"), as_json=as_json, text=text)
