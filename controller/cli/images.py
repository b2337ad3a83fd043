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
    from controller.cli.progress import BuildProgress
    from controller.wiring.machines import build_images, image_digests
    from controller.wiring.tools import system_clock

    with BuildProgress(system_clock()) as bar:
        build_images(settings(), bar.callback())
    _show(sorted(image_digests(settings()).items()), as_json)


@app.command("list")
def list_images(as_json: Json = False) -> None:
    """Show every baked image with its digest: what a manifest names.

    Example: fairtrial images list --json
    """
    from controller.wiring.machines import image_digests

    _show(sorted(image_digests(settings()).items()), as_json)


def _show(images: list[tuple[str, str]], as_json: bool) -> None:
    lines = [f"{name:24} {digest}" for name, digest in images]
    render.result(dict(images), as_json=as_json, text="\n".join(lines) or "no images; run `fairtrial images build`")
