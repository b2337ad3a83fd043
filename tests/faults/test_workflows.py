"""Logical runs on the workflow engine: finished once, taken up again after a halt or an error, several at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.conductor import rounds, running
from controller.conductor.workflow import conduct_round
from controller.conductor.world import World
from controller.domain.statement import StatementKind
from controller.errors import CapReached, DiskFull, InvalidInput, NotAuthorized, RoundHalted
from tests.world.recorded_round import CAPS
from tests.world.simulation import Effects, Killed, Simulation


def conduct(simulation: Simulation, world: World | None = None) -> dict[str, str]:
    database = simulation.directory / "workflows.sqlite"
    return conduct_round(world or simulation.world(), database, fleet_size=2, on_progress=lambda: None)


def test_every_run_is_scored_and_a_second_start_does_nothing_again(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    assert set(conduct(simulation).values()) == {running.SCORED}
    started, statements = dict(simulation.started), len(simulation.journal.statements())
    assert set(conduct(simulation).values()) == {running.SCORED}
    assert (dict(simulation.started), len(simulation.journal.statements())) == (started, statements)


def test_a_halted_cell_waits_for_a_person_and_then_goes_on(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    with pytest.raises(Killed):
        simulation.conduct(simulation.world(Effects(_point_after_first_request(tmp_path))))
    simulation.after_kill("dies")
    with pytest.raises(RoundHalted, match="machine is gone"):
        rounds.start(simulation.world(), fleet_size=2, on_progress=lambda status: None)
    halted = [s.subject for s in simulation.journal.statements() if s.kind is StatementKind.CELL_HALTED]
    rounds.resolve(simulation.journal, simulation.clock, halted[0], "failed", "looked at it")
    status = rounds.start(simulation.world(), fleet_size=2, on_progress=lambda status: None)
    assert status.state == "finished"
    assert [cell.state for cell in status.cells].count("failure") == 1


def _point_after_first_request(tmp_path: Path) -> int:
    """The first moment at which a controller can die with a request on the books."""
    for kill_at in range(200):
        probe = Simulation(tmp_path / f"probe-{kill_at}")
        with pytest.raises(Killed):
            probe.conduct(probe.world(Effects(kill_at)))
        if probe.started and not probe.ended:
            return kill_at
    raise AssertionError("no such moment")


def test_an_error_that_is_nobodys_outcome_reaches_the_operator_and_can_be_mended(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    world = simulation.world()

    def full(*arguments: Any) -> Any:
        raise DiskFull("no space for the patch")

    with pytest.raises(DiskFull):
        conduct(simulation, replace(world, verify=full))
    assert set(conduct(simulation).values()) == {running.SCORED}
    assert max(simulation.started.values()) == 1


def test_nothing_is_leased_without_a_grant_or_beyond_its_caps(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path / "few", caps=CAPS.model_copy(update={"attempts": 2}))
    with pytest.raises(CapReached, match="attempts: 3 of 2"):
        rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    assert len(simulation.started) == 2
    (simulation.directory / "authorization.dsse.json").unlink()
    leases = simulation.pool.leases
    with pytest.raises(NotAuthorized):
        rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    assert simulation.pool.leases == leases


def test_an_operators_stop_lets_nothing_new_start_and_a_resume_takes_it_back(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    rounds.stop(simulation.journal, simulation.clock, "small", "maintenance")
    assert set(conduct(simulation).values()) == {running.STOPPED}
    assert not simulation.started
    status = rounds.start(simulation.world(), fleet_size=2, on_progress=lambda status: None)
    assert status.state == "finished"


def test_a_closed_round_never_grows(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    rounds.stop(simulation.journal, simulation.clock, "small", "enough")
    simulation.settle()
    statements = simulation.journal.statements()
    with pytest.raises(InvalidInput, match="closed"):
        rounds.start(simulation.world(), fleet_size=1, on_progress=lambda status: None)
    with pytest.raises(InvalidInput, match="closed"):
        rounds.stop(simulation.journal, simulation.clock, "small", "again")
    assert simulation.journal.statements() == statements


def test_an_attempt_waits_for_what_others_really_use_before_the_caps_stop_the_round(tmp_path: Path) -> None:
    """Each attempt might use a dollar and uses six thousandths of it, so two are never covered at once."""
    simulation = Simulation(tmp_path, caps=CAPS.model_copy(update={"usd": "1.1"}))
    status = rounds.start(simulation.world(), fleet_size=3, on_progress=lambda status: None)
    assert (status.state, status.stopped_by) == ("finished", None)


def test_nobody_waits_for_an_attempt_that_failed_or_was_halted(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, caps=CAPS.model_copy(update={"usd": "1.1"}))
    world = simulation.world()

    def full(*arguments: Any) -> Any:
        raise DiskFull("no space for the patch")

    with pytest.raises(DiskFull):
        conduct(simulation, replace(world, verify=full))
    stopped = simulation.journal.find(StatementKind.ROUND_STOPPED, "small")
    assert stopped is not None
    assert stopped.body["rule"] == "authorization"
