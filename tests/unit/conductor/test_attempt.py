"""What goes into the published log says nothing about this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.conductor.attempt import REASON_CHARS_MAX, without_paths
from controller.conductor.history import run_histories
from controller.domain.outcome import SelfReport
from controller.errors import SandboxLost
from tests.world.simulation import FakeHarness, Simulation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no space on /srv/data/state/pool/overlay.qcow2", "no space on overlay.qcow2"),
        ("socket '/tmp/fairtrial-0/ab/egress.sock': refused", "socket 'egress.sock': refused"),
        ("ratio 3/4 and a/b stay", "ratio 3/4 and a/b stay"),
        ("expected 200, found 403", "expected 200, found 403"),
    ],
)
def test_absolute_paths_are_cut_down(text: str, expected: str) -> None:
    assert without_paths(text) == expected


def test_a_reason_is_bounded() -> None:
    assert len(without_paths("x" * 10_000)) == REASON_CHARS_MAX


def test_a_machine_that_dies_after_it_handed_everything_in_takes_nothing_away(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    world = simulation.world()

    def dies_at_the_end(sandbox: Any, order: Any) -> None:
        world.execute(sandbox, order)
        raise SandboxLost("the channel closed")

    simulation.conduct(replace(world, execute=dies_at_the_end))
    histories = run_histories(simulation.journal.statements())
    assert all(history.scored and history.scored.outcome == "success" for history in histories.values())
    assert all(len(history.attempts) == 1 for history in histories.values())


def test_a_self_report_that_breaks_its_reader_is_empty(tmp_path: Path) -> None:
    class Breaks(FakeHarness):
        def self_report(self, files: object, log: bytes) -> SelfReport:
            raise RecursionError("hostile")

    simulation = Simulation(tmp_path)
    world = simulation.world()
    simulation.conduct(replace(world, harnesses=dict.fromkeys(world.harnesses, Breaks())))
    assert all(history.scored for history in run_histories(simulation.journal.statements()).values())


def test_registry_names_stay_out_of_the_log(tmp_path: Path) -> None:
    world = replace(Simulation(tmp_path).world(), probe_names=("mirror.corp.example",))
    assert world.without_names("probe name-mirror.corp.example: reached") == "probe name-a package registry: reached"
