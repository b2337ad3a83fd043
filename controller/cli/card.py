"""`fairtrial card lint`, `build`, `pin`: rate cards before they are frozen into a round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json
from controller.errors import UnsoundCard

app = typer.Typer(no_args_is_help=True, help="Check and make rate cards.")
Out = Annotated[Path, typer.Option("--out", help="The card to write; never overwritten.")]


@app.command()
def lint(
    card: Annotated[Path, typer.Argument(help="The rate card, JSON.", exists=True)],
    exceptions: Annotated[
        Path | None, typer.Option("--exceptions", help="Ratios that models are known to break.", exists=True)
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for prices that break the ratios their provider is known to keep, and print the card's digest.

    Example: fairtrial card lint card.json --exceptions policies/rounds/rate-card-exceptions.json
    """
    from controller.wiring.cards import lint_card

    report = lint_card(card, exceptions)
    lines = [f"{report['digest']}  {report['rows']} rows, {len(report['findings'])} findings"]
    lines += [f"  exception used    {name}" for name in report["exceptions_used"]]
    lines += [f"  exception unused  {name}" for name in report["exceptions_unused"]]
    if not report["is_canonical"]:
        lines.append("  the file is not in canonical form, so its SHA-256 is not the digest; see `fairtrial card pin`")
    render.result(report, as_json=as_json, text="\n".join(lines))
    if report["findings"]:
        raise UnsoundCard("\n".join(report["findings"]))


@app.command()
def build(
    models: Annotated[str, typer.Option("--models", help="provider/model, comma-separated, exact ids.")],
    out: Out,
    second_map: Annotated[
        Path, typer.Option("--second-map", help="A file of LiteLLM's price map form to check against.", exists=True)
    ],
    tier: Annotated[list[str] | None, typer.Option("--tier", help="Service tiers; standard if none is named.")] = None,
    speed: Annotated[list[str] | None, typer.Option("--speed", help="Speeds; standard if none is named.")] = None,
    allow_single_source: Annotated[
        list[str] | None, typer.Option("--allow-single-source", help="A price that one map only has; name it in full.")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="The day whose prices hold, YYYY-MM-DD; today.")] = None,
    as_json: Json = False,
) -> None:
    """Build a card from the genai-prices package where a second price map says the same. No network is used.

    Example: fairtrial card build --models anthropic/claude-opus-5-5 --second-map prices.json --out card.json
    """
    from controller.wiring.card_building import build_rate_card

    built = build_rate_card(
        models.split(","),
        out,
        second_map,
        tiers=tier or ["standard"],
        speeds=speed or ["standard"],
        single_sources=allow_single_source or [],
        on=on,
    )
    lines = [f"{built['digest']}  {built['card']}, {built['rows']} rows"]
    lines += [f"  one map only  {name}" for name in built["single_sources"]]
    lines += [f"  left out      {name}: a card has no class for it" for name in built["left_out"]]
    render.result(built, as_json=as_json, text="\n".join(lines))


@app.command()
def pin(
    draft: Annotated[Path, typer.Argument(help="A card as a person writes it, JSON.", exists=True)],
    out: Out,
    as_json: Json = False,
) -> None:
    """Write a card in canonical form, so that the file's SHA-256 is the digest that manifests pin.

    Example: fairtrial card pin draft.json --out card.json
    """
    from controller.wiring.cards import pin_card

    pinned = pin_card(draft, out)
    render.result(pinned, as_json=as_json, text=f"{pinned['digest']}  {pinned['card']}, {pinned['rows']} rows")
