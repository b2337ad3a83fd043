from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from controller.adapters.rehearsal import RehearsalConfig, serve
from controller.errors import InvalidInput, InvalidTask
from tests.unit.adapters.rehearsal.reading import KEY, SCRIPT_TEXT, read_responses


def configured(directory: Path, script: str = SCRIPT_TEXT) -> Path:
    (directory / "rehearsal.json").write_text(script)
    config = RehearsalConfig(
        socket=str(directory / "model.sock"),
        chance_seed="seed",
        scripts={"calc": str(directory / "rehearsal.json")},
    )
    path = directory / "config.json"
    path.write_text(config.model_dump_json())
    return path


async def test_the_service_says_when_it_is_ready_answers_and_ends_on_sigterm(tmp_path: Path) -> None:
    program = "import sys, pathlib; from controller.adapters.rehearsal import serve; serve(pathlib.Path(sys.argv[1]))"
    with subprocess.Popen(  # noqa: ASYNC220  the test waits for this process and does nothing else
        [sys.executable, "-c", program, str(configured(tmp_path))], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == {"ready": True}
            connector = aiohttp.UnixConnector(path=str(tmp_path / "model.sock"))
            async with aiohttp.ClientSession("http://model", connector=connector) as session:
                assert (await session.get("/healthz")).status == 200
                body = {"model": "rehearsal-1", "input": "Fix it.", "stream": True}
                answer = read_responses(await (await session.post("/v1/responses", json=body, headers=KEY)).read())
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert answer.ended


def test_a_wrong_configuration_names_the_file_and_the_field(tmp_path: Path) -> None:
    path = configured(tmp_path)
    path.write_text(path.read_text().replace("chance_seed", "chance"))
    with pytest.raises(InvalidInput, match=r"config\.json: chance_seed"):
        serve(path)


def test_a_missing_or_malformed_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"rehearsal\.json: \(whole file\)"):
        serve(configured(tmp_path, "{"))
    path = configured(tmp_path)
    (tmp_path / "rehearsal.json").unlink()
    with pytest.raises(InvalidInput, match=r"rehearsal\.json: can't be read"):
        serve(path)
