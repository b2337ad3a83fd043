"""An order is pushed once, started once, waited for, and every fault of the sandbox is the sandbox's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from controller.domain.instant import InstantMs
from controller.domain.receipt import RunResult
from controller.errors import SandboxLost
from controller.ports.containers import ContainerExit, Containers, ContainerSpec
from controller.ports.pool import ExecResult, SandboxFacts, SandboxRole
from controller.run import execute
from tests.unit.run.test_step import order


class OneOrderMachine:
    """A machine that answers the push with `status` and whose container ends with `exit_code`."""

    def __init__(self, *, status: str = "", exit_code: int | None = 0, pushed: int = 0) -> None:
        self.status, self.exit_code, self.pushed = status, exit_code, pushed
        self.started: list[ContainerSpec] = []
        self.timeouts: list[float] = []

    @property
    def facts(self) -> SandboxFacts:
        return SandboxFacts(
            name="att-1",
            role=SandboxRole.RUNNER,
            generation=1,
            owner="tests",
            created_at=InstantMs(0),
            expires_at=InstantMs(1),
            alive=True,
        )

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        assert argv[-1] == "att-1"
        answer = f"/scratch/attempt/att-1\n/run/egress.sock\n{self.status}".encode()
        return ExecResult(exit_code=self.pushed, stdout=answer, stderr=b"no space", truncated=False)

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        raise AssertionError("the order is pushed in one piece")

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        raise AssertionError("artifacts come from the store")

    @contextmanager
    def containers(self) -> Iterator[Containers]:
        yield self

    def run(self, spec: ContainerSpec, *, timeout_seconds: float, output_bytes_max: int = 2**20) -> ContainerExit:
        self.started.append(spec)
        self.timeouts.append(timeout_seconds)
        return ContainerExit(exit_code=self.exit_code, oom_killed=False, output=b"what the shim said\n")

    def console(self) -> str:
        return ""


def test_the_container_runs_with_the_machines_own_paths_and_time_beyond_the_hard_limit() -> None:
    machine = OneOrderMachine()
    assert execute(machine, order()) == RunResult(exit_code=0, oom_killed=False, output="what the shim said")
    (spec,) = machine.started
    sources = {mount.target: mount.source for mount in spec.mounts}
    assert sources["/run/fairtrial/egress.sock"] == "/run/egress.sock"
    assert sources["/workspace"] == "/scratch/attempt/att-1/workspace"
    assert spec.seccomp_profile == "/scratch/attempt/att-1/order/seccomp.json"
    assert machine.timeouts[0] > order().limits.agent_seconds


def test_an_order_that_has_ended_is_not_started_again() -> None:
    machine = OneOrderMachine(status="ended     0\n")
    assert execute(machine, order()).exit_code == 0
    assert machine.started == []


def test_an_order_that_was_started_is_left_to_its_container() -> None:
    machine = OneOrderMachine(status="started    \n")
    assert execute(machine, order()).exit_code == 0
    assert [spec.name for spec in machine.started] == ["att-1"]


@pytest.mark.parametrize("exit_code", [97, 137])
def test_a_refused_start_and_a_killed_container_are_told_by_the_artifacts(exit_code: int) -> None:
    assert execute(OneOrderMachine(exit_code=exit_code), order()).exit_code == exit_code


@pytest.mark.parametrize(
    ("machine", "fault"),
    [
        (OneOrderMachine(exit_code=None), "still running at its deadline"),
        (OneOrderMachine(exit_code=96), "started before"),
        (OneOrderMachine(exit_code=98), "did not take an artifact: what the shim said"),
        (OneOrderMachine(exit_code=99), "could not carry out the order"),
        (OneOrderMachine(status="ended    98\n"), "did not take an artifact: it said nothing"),
        (OneOrderMachine(pushed=1), "could not be pushed: no space"),
    ],
)
def test_what_the_sandbox_owes_is_a_lost_sandbox(machine: OneOrderMachine, fault: str) -> None:
    with pytest.raises(SandboxLost, match=f"att-1: .*{fault}"):
        execute(machine, order())
