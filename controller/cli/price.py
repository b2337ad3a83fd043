"""`fairtrial price`: classes and exact cost of one usage record, or of a file of cases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json
from controller.errors import InvalidInput


def price(
    usage: Annotated[Path | None, typer.Argument(help="A provider's usage record, JSON.", exists=True)] = None,
    card: Annotated[Path | None, typer.Option("--card", help="The rate card, JSON.", exists=True)] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", help="For example anthropic, or anthropic_sse.")] = None,
    cases: Annotated[Path | None, typer.Option("--cases", help="A case file instead.", exists=True)] = None,
    retail: Annotated[
        Path | None, typer.Option("--retail", help="A retail policy: also show what it would charge.", exists=True)
    ] = None,
    as_json: Json = False,
) -> None:
    """Read one usage record into disjoint billable classes and price it exactly. Unknown is refused, never zero.

    Example: fairtrial price --card card.json --dialect openai_responses usage.json --json
    """
    from controller.wiring.cases import metering_cases, price_record

    if cases is not None:
        if usage or card or dialect or retail:
            raise InvalidInput("--cases brings its own cards and usage", remedy="Give --cases alone.")
        render.result(metering_cases(cases), as_json=True, text="")
        return
    if usage is None or card is None or dialect is None:
        raise InvalidInput("price needs USAGE.json, --card and --dialect, or --cases", remedy="See its --help.")
    priced = price_record(usage, card, dialect, retail)
    lines = [f"  {name:12} {count}" for name, count in {**priced["classes"], **priced["units"]}.items()]
    if priced["row"]:
        row = priced["row"]
        conditions = f"tier {row['tier']}, speed {row['speed']}, geo {row['geo']}, band over {row['band_over']}"
        lines.append(f"  row          {row['provider']}/{row['model']} ({conditions}), tokens x{priced['multiplier']}")
    if priced["zero_bill_rule"]:
        lines.append(f"  free by      {priced['zero_bill_rule']}")
    if retail is not None:
        lines.append(f"  retail       ${priced['retail']['usd']} ({priced['retail']['policy']})")
    lines.append(f"  card         {priced['card_digest']}")
    render.result(priced, as_json=as_json, text="\n".join([f"${priced['usd']}", *lines]))
