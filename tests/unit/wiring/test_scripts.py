"""The script of a sealed task lies readable only while the scripted model reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.errors import MachineUnsupported
from controller.settings import read_settings
from controller.wiring.ledgers import LedgerPlace
from controller.wiring.services import RoundServices, runtime_directory
from tests.world.processes import short_directory
from tests.world.simulation import Simulation

SCRIPTS = {"first": '{"a": 1}\n', "second": "{}\n"}


@pytest.mark.parametrize("fails", [False, True], ids=["starts", "fails"])
def test_scripts_are_gone_when_the_services_are_up_or_have_failed(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Simulation(tmp_path).frozen.manifest
    seen: dict[str, str] = {}

    class Recorded:
        """A service that reads its scripts when it starts, as the real one does."""

        def __init__(self, name: str, config: Any) -> None:
            self._name, self._config = name, config

        def start(self) -> None:
            if self._name == "rehearsal":
                for task, path in self._config.scripts.items():
                    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
                    seen[task] = Path(path).read_text()
            if fails:
                raise MachineUnsupported("as arranged")

        def stop(self) -> None:
            pass

    monkeypatch.setattr(RoundServices, "_ours", lambda self, name, config: Recorded(name, config))
    monkeypatch.setattr(RoundServices, "_egress", lambda self: Recorded("egress", None))
    with short_directory() as directory:
        settings = read_settings({"FAIRTRIAL_RUNTIME_DIR": str(directory / "run")})
        place = LedgerPlace(location=str(directory / "ledger.sqlite"), schema_name="unused")
        services = RoundServices(settings, tmp_path, manifest, SCRIPTS, place)
        if fails:
            with pytest.raises(MachineUnsupported), services.running():
                raise AssertionError("never up")
        else:
            with services.running():
                assert not list(runtime_directory(settings, tmp_path, manifest).rglob("*.json"))
        assert not list(runtime_directory(settings, tmp_path, manifest).rglob("*.json"))
    assert seen == SCRIPTS
    assert json.dumps(SCRIPTS["first"]) not in "".join(path.read_text() for path in services.directory.glob("*.json"))
