"""Kill the controller before and after every effect; a new one finishes the round or halts a cell and says why.

Whatever happens: no attempt's harness is started twice, no request is lost, no machine is left behind, and what was
acknowledged stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.conductor import rounds, running
from controller.conductor.history import run_histories
from controller.domain.ids import AttemptId
from controller.domain.outcome import EndKind
from controller.domain.usage import RequestState
from controller.evidence.log import check_chain
from tests.world.simulation import Aftermath, Effects, Killed, Simulation


def story(run: str, number: int) -> EndKind:
    """Two of the four runs are tried again: one after a crash of the harness, one after a lost machine."""
    if run.startswith("one.") and number == 1:
        return EndKind.HARNESS_CRASH if run.endswith("alpha.r1") else EndKind.INFRASTRUCTURE
    return EndKind.NORMAL


def points(tmp_path: Path) -> int:
    """How many moments there are at which a controller can die in an undisturbed round."""
    effects = Effects()
    simulation = Simulation(tmp_path / "count", end=story)
    simulation.conduct(simulation.world(effects))
    return effects.count


def check_outside_world(simulation: Simulation, results: dict[str, str]) -> None:
    """What must hold however often the controller died."""
    statements = simulation.journal.statements()
    check_chain(statements)
    twice = [name for name, count in simulation.started.items() if count > 1]
    assert not twice, f"harness started more than once: {twice}"
    assert not simulation.pool.machines, "a machine was left behind"
    histories = run_histories(statements)
    for run, result in results.items():
        history = histories[run]
        if result == running.SCORED:
            assert history.scored is not None
            assert all(attempt.classified for attempt in history.attempts)
        else:
            assert result == running.HALTED
            assert history.halted is not None
            assert history.halted.requests > 0, "halted although nothing was spent"
        for attempt in history.attempts:
            rows = simulation.ledger.account(AttemptId(attempt.attempt_id)).requests
            assert all(row.state is RequestState.SETTLED for row in rows)
            if attempt.settled is not None:
                assert attempt.settled.requests == len(rows), "a request was lost"


def kills(total: int) -> Iterator[int]:
    yield from range(total)


@pytest.mark.parametrize("aftermath", ["finishes", "goes on", "dies"])
def test_a_kill_at_any_moment_loses_nothing_and_repeats_nothing(aftermath: Aftermath, tmp_path: Path) -> None:
    total = points(tmp_path)
    assert total > 100, "the sweep would be too thin"
    halted = 0
    for kill_at in kills(total):
        simulation = Simulation(tmp_path / f"{kill_at}", end=story)
        with pytest.raises(Killed):
            simulation.conduct(simulation.world(Effects(kill_at)))
        simulation.after_kill(aftermath)
        results = simulation.conduct(simulation.world())
        halted += list(results.values()).count(running.HALTED)
        for run, result in results.items():
            if result == running.HALTED:
                rounds.resolve(simulation.journal, simulation.clock, run, "lost", "the machine died")
        results = simulation.conduct(simulation.world())
        assert set(results.values()) == {running.SCORED}, f"killed at {kill_at}: {results}"
        outcomes = {run: history.scored for run, history in run_histories(simulation.journal.statements()).items()}
        assert all(scored is not None and scored.outcome == "success" for scored in outcomes.values()), outcomes
        check_outside_world(simulation, results)
    assert (halted > 0) == (aftermath == "dies"), "a cell is halted exactly when its machine died after it had spent"


def test_a_controller_that_dies_again_and_again_still_finishes(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, end=story)
    deaths, kill_at = 0, 3
    while True:
        try:
            results = simulation.conduct(simulation.world(Effects(kill_at)))
            break
        except Killed:
            deaths += 1
            kill_at = kill_at % 11 + 3
            simulation.after_kill("goes on")
            assert deaths < 500
    assert deaths > 10
    assert set(results.values()) == {running.SCORED}
    check_outside_world(simulation, results)
