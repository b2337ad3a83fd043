"""`fairtrial settle`, `publish`, `check`: from the log to a release, and from a release to belief."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings


def settle(
    round_dir: Round,
    usage_report: Annotated[
        list[Path] | None,
        typer.Option("--usage-report", help="A page of the provider's usage report; give every page.", exists=True),
    ] = None,
    retail_policy: Annotated[
        Path | None, typer.Option("--retail-policy", help="Also show what these terms would charge.", exists=True)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the books without closing them.")] = False,
    as_json: Json = False,
) -> None:
    """Close the books: every accepted request has one usage record or one zero-bill proof, or its run is invalid.

    Example: fairtrial settle rounds/latest --usage-report usage-1.json --usage-report usage-2.json
    """
    from controller.cli.settle_text import describe
    from controller.wiring.settling import settle_round

    found = settle_round(settings(), round_dir, usage_report or [], retail_policy=retail_policy, dry_run=dry_run)
    render.result(found.model_dump(mode="json"), as_json=as_json, text=describe(found))


def publish(
    round_dir: Round,
    out: Annotated[Path, typer.Option("--out", help="Where releases go; each one is a new version.")],
    correction: Annotated[
        str | None, typer.Option("--correction", help="Why this version supersedes the one before, for its readers.")
    ] = None,
    creator: Annotated[
        list[str] | None,
        typer.Option("--creator", help='Who made it, as "Family, Given"; then metadata for a deposit is written, too.'),
    ] = None,
    licence: Annotated[str, typer.Option("--licence", help="Of the deposit, by its SPDX id.")] = "CC-BY-4.0",
    related: Annotated[
        list[str] | None,
        typer.Option("--related", help="Another work, as RELATION=IDENTIFIER, such as isNewVersionOf=10.5281/zenodo.1"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the release: report, dataset, and a signed bundle that a stranger can check offline. Nothing is sent.

    Example: fairtrial publish rounds/latest --out rounds/latest/release
    """
    from controller.publish.deposit import terms_of
    from controller.wiring.releasing import publish_round

    terms = terms_of(creator, licence, related or []) if creator else None
    released = publish_round(settings(), round_dir, out, correction=correction, deposit=terms)
    render.result({"release": str(released)}, as_json=as_json, text=f"published: {released}")


def check(
    bundle: Annotated[Path, typer.Argument(help="The bundle's directory.", show_default=False)],
    key: Annotated[Path | None, typer.Option("--key", help="The publisher's public keys, to pin them.")] = None,
    witness: Annotated[
        Path | None, typer.Option("--witness", help="Lines of witnesses, each of whom must have seen the whole log.")
    ] = None,
    tsa: Annotated[
        Path | None, typer.Option("--tsa", help="Certificates of a time authority that must have stamped the log.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a bundle offline: signatures, log, charges, schedule, dataset, every statistic. Trusts nothing in it.

    Example: fairtrial check rounds/latest/bundle
    """
    from controller.wiring.checking import check_bundle, describe_check

    report = check_bundle(settings(), bundle, key, witness=witness, tsa=tsa)
    render.result(report.model_dump(mode="json"), as_json=as_json, text=describe_check(report))


def finish(round_dir: Path, as_json: bool) -> None:
    """Settle, analyse, publish and check a conducted round; print where the report is, or why it says nothing."""
    from controller.wiring.analysing import analyse_round, conclusion
    from controller.wiring.checking import check_bundle, describe_check
    from controller.wiring.demo import point_bundle
    from controller.wiring.releasing import publish_round
    from controller.wiring.rounds import require_working_sandboxes
    from controller.wiring.settling import settle_round

    chosen = settings()
    settle_round(chosen, round_dir)
    found = analyse_round(round_dir)
    bundle = publish_round(chosen, round_dir, round_dir / "release")
    point_bundle(round_dir, bundle)
    checked = check_bundle(chosen, bundle, None)
    report = round_dir / "report.html"
    render.note(conclusion(found))
    render.note(describe_check(checked).splitlines()[-1])
    render.result(
        {"round": str(round_dir), "report": str(report), "bundle": str(bundle), "checked": True},
        as_json=as_json,
        text=f"report: {report}",
    )
    require_working_sandboxes(round_dir)
