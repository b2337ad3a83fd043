"""The project's scripted model as a process, for clients that work through a whole task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.world.processes import ServiceProcess

TASK = "calc"


@contextmanager
def rehearsal_model(directory: Path, script: dict[str, Any]) -> Iterator[Path]:
    """The model's socket. It plays `script` for the task `TASK`, every time from the start."""
    directory.mkdir()
    (directory / "script.json").write_text(json.dumps(script))
    socket, config = directory / "model.sock", directory / "model.json"
    settings = {"socket": str(socket), "chance_seed": "seed", "scripts": {TASK: str(directory / "script.json")}}
    config.write_text(json.dumps(settings | {"schema_version": "fairtrial.rehearsal-service/1"}))
    service = ServiceProcess("adapters.rehearsal", config)
    try:
        service.wait_ready()
        yield socket
    finally:
        service.stop()


def key(attempt: int) -> str:
    """The provider key under which the model plays the task for this attempt."""
    return f"rehearsal:{TASK}:arm:1:{attempt}"
