"""`fairtrial doctor`: what this machine can do, and what to install."""

from __future__ import annotations

import typer

from controller.cli import render
from controller.cli.options import Json, settings


def doctor(as_json: Json = False) -> None:
    """Say what this machine can do: programs, acceleration, disk, memory, images and keys. Starts no machine.

    Example: fairtrial doctor
    """
    from controller.adapters.doctor import examine

    chosen = settings()
    findings = examine(
        state_dir=chosen.state_dir,
        images_dir=chosen.images_dir,
        free_disk_bytes_min=chosen.free_disk_bytes_min,
        fleet_size=chosen.fleet_size,
    )
    lines = [f"{'ok ' if f.ok else 'NO '} {f.subject:14} {f.detail}" for f in findings]
    lines += [f"      {f.subject}: {f.remedy}" for f in findings if not f.ok]
    render.result([f.model_dump(mode="json") for f in findings], as_json=as_json, text="\n".join(lines))
    if not all(finding.ok for finding in findings if finding.required):
        raise typer.Exit(80)
