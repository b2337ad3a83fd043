"""Services are found again by whoever comes next, never mistaken for another process, and ended with their children."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.adapters.services import Service
from controller.errors import MachineUnsupported, MissingProgram, PortOccupied

READY = "import pathlib, signal, sys; pathlib.Path(sys.argv[1]).touch(); signal.pause()"


def service(directory: Path, *, program: str = READY, lifetime_seconds: int = 60) -> Service:
    marker = directory / "ready"
    argv = [sys.executable, "-c", program, str(marker)]
    return Service("model", argv, directory=directory, lifetime_seconds=lifetime_seconds, ready=marker.exists)


def pid(directory: Path) -> int:
    return int(json.loads((directory / "model.json").read_text())["pid"])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    found = service(tmp_path)
    found.start()
    yield found
    found.stop()


def test_a_running_service_is_adopted_and_not_started_again(running: Service, tmp_path: Path) -> None:
    first = pid(tmp_path)
    service(tmp_path).start()
    assert pid(tmp_path) == first
    assert running.alive()


def test_a_stop_ends_the_process_and_may_be_repeated(running: Service, tmp_path: Path) -> None:
    number = pid(tmp_path)
    running.stop()
    running.stop()
    assert not running.alive()
    with pytest.raises(ProcessLookupError):
        os.killpg(number, 0)


def test_a_recycled_pid_is_neither_adopted_nor_killed(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"pid": os.getpid(), "started": 1}))
    found = service(tmp_path)
    assert not found.alive()
    found.stop()
    assert os.getpid() > 0, "this process was not killed"


def test_the_answers_of_a_stranger_are_not_taken_for_those_of_our_process(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    with pytest.raises(PortOccupied, match="model"):
        service(tmp_path).start()
    assert not (tmp_path / "model.json").exists()


def test_a_service_that_ends_before_it_is_ready_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(MachineUnsupported, match="address in use"):
        service(tmp_path, program="import sys; sys.exit('address in use')").start()
    assert not (tmp_path / "model.json").exists()


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match="timeout"):
        service(tmp_path).start()


def test_the_environment_of_a_service_holds_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "sk-secret")
    program = (
        "import os, pathlib, signal, sys; pathlib.Path(sys.argv[1]).write_text(repr(dict(os.environ))); signal.pause()"
    )
    found = service(tmp_path, program=program)
    found.start()
    found.stop()
    assert "sk-secret" not in (tmp_path / "ready").read_text()
