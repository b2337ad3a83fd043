from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world.sealed_site import Site, close_round, make_site


@pytest.fixture(scope="session")
def _sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    """A site before and after a round; made once, since every conducted and analysed round takes its time."""
    directory = tmp_path_factory.mktemp("sites")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_STATE_DIR", str(directory / "before" / "state"))
        before = make_site(directory / "before")
        patch.setenv("FAIRTRIAL_STATE_DIR", str(directory / "after" / "state"))
        after = before.copied(directory / "after")
        close_round(after)
    yield before, after


@pytest.fixture
def site(_sites: tuple[Site, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A machine with all keys and a sealed store."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    return _sites[0].copied(tmp_path)


@pytest.fixture
def closed(_sites: tuple[Site, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The same after a round that was conducted, settled, analysed and published."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    return _sites[1].copied(tmp_path)
