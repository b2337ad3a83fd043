"""`fairtrial images`: bake and list what runs."""

from __future__ import annotations

import typer

from controller.cli import render
from controller.cli.options import Json, settings

app = typer.Typer(no_args_is_help=True, help="Bake VM, harness, verifier and egress images; list their digests.")


@app.command()
def build(as_json: Json = False) -> None:
    """Bake every image whose recipe changed; the others are reused. Needs the package registries.

    Example: fairtrial images build
    """
    from controller import wiring
    from controller.cli.progress import BuildProgress

    with BuildProgress(wiring.system_clock()) as bar:
        wiring.build_images(settings(), bar.callback())
    _show(sorted(wiring.image_digests(settings()).items()), as_json)


@app.command("list")
def list_images(as_json: Json = False) -> None:
    """Show every baked image with its digest: what a manifest names.

    Example: fairtrial images list --json
    """
    from controller import wiring

    _show(sorted(wiring.image_digests(settings()).items()), as_json)


def _show(images: list[tuple[str, str]], as_json: bool) -> None:
    lines = [f"{name:24} {digest}" for name, digest in images]
    render.result(dict(images), as_json=as_json, text="\n".join(lines) or "no images; run `fairtrial images build`")
