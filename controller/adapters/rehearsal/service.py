"""Run the rehearsal model as a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from aiohttp import web

from controller.adapters.http_service import Stop, read_record, run_service
from controller.adapters.rehearsal.script import parse_script
from controller.adapters.rehearsal.server import app
from controller.domain.record import Record
from controller.errors import InvalidInput

DRAIN_SECONDS: Final = 5.0


class RehearsalConfig(Record):
    """Everything the rehearsal model is told. Paths are absolute; `scripts` maps a task id to its script file."""

    schema_version: Literal["fairtrial.rehearsal-service/1"] = "fairtrial.rehearsal-service/1"
    socket: str
    chance_seed: str
    scripts: dict[str, str]


def serve(config_path: Path) -> None:
    """Answer until SIGTERM. Raises InvalidInput for a wrong configuration, InvalidTask for a malformed script."""
    config = read_record(config_path, RehearsalConfig)
    scripts = {}
    for task, name in config.scripts.items():
        try:
            scripts[task] = parse_script(Path(name).read_bytes(), origin=name)
        except OSError as error:
            raise InvalidInput(f"{name}: can't be read: {error.strerror}") from error

    async def build(stop: Stop) -> web.Application:
        return app(scripts, config.chance_seed)

    run_service(build, socket=Path(config.socket), drain_seconds=DRAIN_SECONDS)
