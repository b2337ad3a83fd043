"""What a frozen round no longer allows: a grant beyond its envelope, and another version of our programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.flows import load_flows
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.software import software_digest
from controller.domain.bodies import RoundFrozen
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput
from controller.freeze import load_frozen
from controller.settings import Settings
from controller.wiring.conducting import check_programs
from controller.wiring.granting import full_caps, grant
from tests.world.recorded_round import ENVELOPE
from tests.world.simulation import Simulation


@pytest.fixture
def round_dir(tmp_path: Path) -> Path:
    found = Simulation(tmp_path)
    for path in found.directory.glob("authorization*"):
        path.unlink()
    journal = SqlJournal.in_directory(found.directory)
    frozen = RoundFrozen(manifest_digest=found.frozen.digest, corpus_root=found.frozen.manifest.corpus_root)
    journal.append(StatementKind.ROUND_FROZEN, "small", frozen, at=found.clock.now())
    journal.close()
    return found.directory


@pytest.mark.parametrize(
    ("cap", "value", "told"),
    [
        ("logical_runs", 101, "logical_runs: 101 of 100"),
        ("attempts", 301, "attempts: 301 of 300"),
        ("requests", 18_001, "requests: 18001 of 18000"),
        ("usd", "300.01", "usd: 300.01 of 300"),
        ("timeout_minutes", 9_001, "timeout_ms: 540060000 of 540000000"),
    ],
)
def test_a_grant_beyond_the_envelope_is_refused(round_dir: Path, cap: str, value: object, told: str) -> None:
    settings = Settings(state_dir=round_dir.parent / "state")
    with pytest.raises(InvalidInput, match=f"beyond the frozen envelope: {told}"):
        grant(settings, round_dir, ENVELOPE.model_dump() | {cap: value}, valid_hours=1)
    assert not list(round_dir.glob("authorization*"))


def test_without_caps_the_whole_envelope_is_granted(round_dir: Path) -> None:
    assert full_caps(round_dir) == ENVELOPE
    granted = grant(Settings(state_dir=round_dir.parent / "state"), round_dir, None, valid_hours=1)
    assert granted.caps == ENVELOPE


def test_a_round_is_run_by_the_version_and_the_policy_it_was_frozen_with(round_dir: Path) -> None:
    settings = Settings()
    frozen = load_frozen(round_dir).manifest
    ours = {
        "software_digest": software_digest(),
        "network_policy_digest": load_flows(settings.flows_file).digest,
    }
    check_programs(settings, frozen.model_copy(update=ours))
    for field, told in (("software_digest", "fairtrial itself"), ("network_policy_digest", "the network policy")):
        changed = frozen.model_copy(update={**ours, field: "sha256:" + "0" * 64})
        with pytest.raises(InvalidInput, match=f"frozen with another version of: {told}$"):
            check_programs(settings, changed)
