from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.evidence.bundle import BUNDLE_BYTES_MAX
from tests.world.recorded_round import conducted


@pytest.fixture(scope="session")
def good_bundle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small published round. Tests change copies of the dictionary."""
    directory: Path = tmp_path_factory.mktemp("rounds")
    published = conducted(directory / "small").publish()
    return LocalFiles().read_directory(published.path, bytes_max=BUNDLE_BYTES_MAX)
