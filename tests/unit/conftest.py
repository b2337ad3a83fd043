from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.conductor.recompute import RoundRecompute
from controller.evidence.bundle import BUNDLE_BYTES_MAX
from controller.publish import publish
from tests.world.recorded_round import conducted
from tests.world.signer import FixedSigner


@pytest.fixture(scope="session")
def good_bundle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small published round. Tests change copies of the dictionary."""
    directory: Path = tmp_path_factory.mktemp("rounds")
    found = conducted(directory / "small")
    published = publish(
        found.directory,
        directory / "release",
        found.records(),
        files=LocalFiles(),
        signer=FixedSigner(),
        recompute=RoundRecompute(),
    )
    return LocalFiles().read_directory(published.path, bytes_max=BUNDLE_BYTES_MAX)
