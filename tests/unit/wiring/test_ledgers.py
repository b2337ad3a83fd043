"""A round's ledger is chosen once, by URL or none, and a password never reaches a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.errors import InvalidInput
from controller.settings import Settings
from controller.wiring.ledgers import ledger_of

DIGEST = "sha256:" + "ab" * 32
URL = "postgresql://meter@db.example/fairtrial"
NOWHERE = Settings()
THERE = Settings(ledger_url=URL)


def test_a_round_has_its_own_file_unless_a_url_is_set(tmp_path: Path) -> None:
    place = ledger_of(NOWHERE, tmp_path, DIGEST)
    assert place.location == str(tmp_path / "ledger.sqlite")
    assert not list(tmp_path.iterdir())


def test_a_round_keeps_the_database_it_began_with(tmp_path: Path) -> None:
    place = ledger_of(THERE, tmp_path, DIGEST)
    assert (place.location, place.schema_name) == (URL, "round_abababababababababab")
    assert ledger_of(NOWHERE, tmp_path, DIGEST) == place  # a reader needs no setting
    assert ledger_of(THERE, tmp_path, DIGEST) == place
    with pytest.raises(InvalidInput, match="began with another ledger"):
        ledger_of(Settings(ledger_url="postgresql://meter@other.example/fairtrial"), tmp_path, DIGEST)


def test_a_round_that_began_in_its_file_stays_there(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").touch()
    with pytest.raises(InvalidInput, match=r"ledger\.sqlite"):
        ledger_of(THERE, tmp_path, DIGEST)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://meter:hunter2@db.example/fairtrial",
        "postgresql://db.example/fairtrial?password=hunter2",
        "postgresql://db.example/fairtrial?sslpassword=hunter2",
        "postgresql://db.example/fairtrial?hunter2",
        "mysql://hunter2@db.example/fairtrial",
        "hunter2.sqlite",
    ],
)
def test_a_url_that_cannot_be_written_down_is_refused_unsaid(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ledger_of(Settings(ledger_url=url), tmp_path, DIGEST)
    assert "hunter2" not in f"{refused.value} {refused.value.remedy}"
    assert not list(tmp_path.iterdir())


def test_a_choice_that_was_edited_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text('{"location": 3}')
    with pytest.raises(InvalidInput, match=r"ledger\.json: location"):
        ledger_of(NOWHERE, tmp_path, DIGEST)
