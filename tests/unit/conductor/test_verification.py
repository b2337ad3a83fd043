"""A verifier machine that dies is replaced; one that dies of a patch is no excuse for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.conductor.history import run_histories
from controller.domain.outcome import Verdict
from controller.domain.statement import StatementKind
from controller.errors import SandboxLost
from tests.world.simulation import Simulation


def lossy(simulation: Simulation, losses: int) -> Any:
    """A verify stage whose first `losses` machines die while they judge."""
    left = losses

    def verify(*arguments: Any) -> tuple[Verdict, bytes]:
        nonlocal left
        if left:
            left -= 1
            raise SandboxLost("the machine died")
        return simulation.world().verify(*arguments)

    return verify


def first_run(simulation: Simulation) -> Any:
    return run_histories(simulation.journal.statements())[simulation.frozen.manifest.schedule[0].id]


def test_a_lost_verifier_machine_is_replaced(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    simulation.conduct(replace(simulation.world(), verify=lossy(simulation, 2)))
    assert first_run(simulation).scored.outcome == "success"
    assert not simulation.pool.machines


def test_a_patch_that_kills_every_machine_has_failed(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    simulation.conduct(replace(simulation.world(), verify=lossy(simulation, 3)))
    history = first_run(simulation)
    assert history.scored.outcome == "failure"
    assert "lost 3 times" in history.attempts[0].classified.reason
    assert len(history.attempts) == 1, "a normal answer is never tried again"
    assert not simulation.pool.machines


def test_when_no_machine_can_be_had_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(tmp_path)
    lease = simulation.pool.lease

    def refuse_verifiers(spec: Any) -> Any:
        if spec.name.startswith("ver-"):
            raise SandboxLost("the host has no room")
        return lease(spec)

    monkeypatch.setattr(simulation.pool, "lease", refuse_verifiers)
    with pytest.raises(SandboxLost):
        simulation.conduct(simulation.world())
    kinds = {statement.kind for statement in simulation.journal.statements()}
    assert StatementKind.VERDICT not in kinds
    monkeypatch.undo()
    assert set(simulation.conduct(simulation.world()).values()) == {"scored"}
