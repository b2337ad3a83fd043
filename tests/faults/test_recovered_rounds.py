"""A round whose controller was killed and resumed still makes a bundle that a stranger accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.conductor import rounds, running
from controller.conductor.history import run_histories
from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import AttemptId
from controller.domain.outcome import EndKind
from controller.publish import Published, RoundRecords, publish
from tests.world.recorded_round import REPORT
from tests.world.simulation import Aftermath, Effects, Killed, Simulation, started

KILLS_APART = 23  # neighbouring moments differ little; the sweep over every one of them is in test_controller_killed


def story(run: str, number: int) -> EndKind:
    """A crash of the harness, a lost machine and a timeout, each of which is tried again."""
    if number > 1:
        return EndKind.NORMAL
    match run:
        case "first.alpha.r1":
            return EndKind.HARNESS_CRASH
        case "first.beta.r1":
            return EndKind.INFRASTRUCTURE
        case "second.alpha.r1":
            return EndKind.TIMEOUT
        case _:
            return EndKind.NORMAL


def _release(simulation: Simulation, out: Path) -> Published:
    manifest, recompute = simulation.frozen.manifest, RoundRecompute()
    simulation.settle()
    statements = simulation.journal.statements()
    dataset = recompute.dataset(manifest, simulation.frozen.digest, statements)
    (simulation.directory / "dataset.jsonl").write_bytes(dataset)
    (simulation.directory / "analysis.json").write_bytes(recompute.analysis(manifest, dataset))
    attempts = [a.attempt_id for history in run_histories(statements).values() for a in history.attempts]
    accounts = [simulation.ledger.account(AttemptId(name)) for name in attempts]
    records = RoundRecords(
        statements=statements,
        ledger=[row for account in accounts for row in account.requests],
        refusals=[refusal for account in accounts for refusal in account.refusals],
        report=lambda versions: REPORT,
    )
    return publish(
        simulation.directory, out, records, files=LocalFiles(), signer=simulation.signer, recompute=recompute
    )


def test_an_undisturbed_round_is_accepted(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, end=story, passes=lambda run, number: run.startswith("first"))
    started(simulation, 1)
    assert set(simulation.conduct(simulation.world()).values()) == {running.SCORED}
    report = _release(simulation, tmp_path / "release").report
    assert report.passed
    assert "4 logical runs scored" in report.steps[5].detail


@pytest.mark.parametrize("aftermath", ["finishes", "goes on", "dies"])
def test_a_killed_and_resumed_round_is_accepted(aftermath: Aftermath, tmp_path: Path) -> None:
    counted = Effects()
    simulation = Simulation(tmp_path / "count", end=story)
    simulation.conduct(simulation.world(counted))
    for kill_at in range(0, counted.count, KILLS_APART):
        simulation = Simulation(tmp_path / f"{kill_at}", end=story)
        started(simulation, 1)
        with pytest.raises(Killed):
            simulation.conduct(simulation.world(Effects(kill_at)))
        simulation.after_kill(aftermath)
        started(simulation, 2)
        for run, result in simulation.conduct(simulation.world()).items():
            if result == running.HALTED:
                rounds.resolve(simulation.journal, simulation.clock, run, "lost", "the machine died")
        assert set(simulation.conduct(simulation.world()).values()) == {running.SCORED}
        assert _release(simulation, tmp_path / f"release-{kill_at}").report.passed


def test_a_halted_cell_that_is_resolved_as_failed_is_accepted(tmp_path: Path) -> None:
    for kill_at in range(200):
        simulation = Simulation(tmp_path / f"{kill_at}")
        started(simulation, 1)
        with pytest.raises(Killed):
            simulation.conduct(simulation.world(Effects(kill_at)))
        simulation.after_kill("dies")
        results = simulation.conduct(simulation.world())
        halted = [run for run, result in results.items() if result == running.HALTED]
        if halted:
            break
    rounds.resolve(simulation.journal, simulation.clock, halted[0], "failed", "no second try")
    assert set(simulation.conduct(simulation.world()).values()) == {running.SCORED}
    published = _release(simulation, tmp_path / "release")
    assert published.report.passed
    assert b"decided by the operator" in (published.path / "dataset.jsonl").read_bytes()
