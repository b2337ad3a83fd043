"""A running meter says by which rate card it prices, and one that is silent is no meter that agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.domain.ids import sha256_digest
from controller.errors import LedgerUnavailable
from controller.evidence.canonical import canonical
from controller.settings import read_settings
from controller.wiring.ledgers import LedgerPlace
from controller.wiring.services import RoundServices, runtime_directory
from tests.world.processes import CARD, MeterRig, short_directory
from tests.world.simulation import Simulation


def test_the_meter_names_the_card_that_it_loaded(tmp_path: Path) -> None:
    manifest = Simulation(tmp_path).frozen.manifest
    with short_directory() as directory:
        settings = read_settings({"FAIRTRIAL_RUNTIME_DIR": str(directory / "run")})
        place = LedgerPlace(location=str(directory / "ledger.sqlite"), schema_name="unused")
        services = RoundServices(settings, tmp_path, manifest, {}, place)
        (directory / "meter").mkdir()
        rig = MeterRig(directory / "meter", "http://127.0.0.1:9")
        (runtime_directory(settings, tmp_path, manifest) / "meter.sock").symlink_to(rig.socket)
        (directory / "meter" / "card.json").write_text("{}")  # what lies on the disk by now does not matter
        assert services.rate_card_in_use() == sha256_digest(canonical(CARD))
        rig.service.stop()
        with pytest.raises(LedgerUnavailable, match="does not say by which rate card it prices"):
            services.rate_card_in_use()
        rig.ledger.close()
