"""A whole round through the command line, in real machines: its controller is killed on the way and resumed.

Two arms of one real harness on one task keep it short. Everything else is what an operator gets.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.services import Service
from controller.domain.statement import Statement, StatementKind
from controller.settings import PROJECT, Settings
from controller.wiring.machines import make_pool

pytestmark = pytest.mark.vm

TASK = "inflection-ordinals"
WAIT_SECONDS = 600.0


@dataclass
class Operator:
    """Types commands in an environment of their own; images and sources are the project's."""

    home: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "controller.cli", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FAIRTRIAL_ROUNDS_DIR": str(self.home / "rounds"),
            "FAIRTRIAL_RUNTIME_DIR": str(self.home / "run"),
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run one command to its end; its standard output."""
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, env=self.environment, timeout=WAIT_SECONDS
        )
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = Operator(tmp_path_factory.mktemp("operator"))
    operator.run("images", "build")
    yield operator
    clean_up(operator.home / "rounds" / "one")


def clean_up(round_dir: Path) -> None:
    """End what a round that failed on the way has left: it would end by itself, but later than the tests."""
    pool = make_pool(Settings())
    for statement in of_kind(round_dir, StatementKind.SANDBOX_LEASED):
        pool.destroy(statement.subject, generation=statement.body["generation"])
    for record in (round_dir / "services").glob("*.json"):
        if not record.stem.endswith("-config"):
            directory = record.parent
            Service(record.stem, [], directory=directory, lifetime_seconds=1, ready=lambda: False).stop()


@pytest.fixture(scope="module")
def finished(operator: Operator) -> Path:
    """A round that was frozen, authorized, started, killed, resumed, settled, analysed and published."""
    round_dir = operator.home / "rounds" / "one"
    plan = write_plan(operator.home)
    operator.run("freeze", str(plan), "--out", str(round_dir))
    operator.run("start", str(round_dir), code=68)  # nobody has authorized it
    operator.run("authorize", str(round_dir), "--usd", "6")
    kill_when(operator, round_dir, StatementKind.SANDBOX_LEASED)
    kill_when(operator, round_dir, StatementKind.RESULT_ACKNOWLEDGED)
    operator.run("resume", str(round_dir))
    operator.run("settle", str(round_dir))
    operator.run("analyse", str(round_dir))
    operator.run("publish", str(round_dir), "--out", str(operator.home / "release"))
    return round_dir


def write_plan(home: Path) -> Path:
    """The demo's plan with one task, and with two arms of the quicker harness."""
    demo = PROJECT / "policies" / "rounds"
    plan = yaml.safe_load((demo / "demo.yaml").read_text())
    arm = next(arm for arm in plan["arms"] if arm["harness"] == "codex")
    plan["arms"] = [
        {**arm, "id": f"codex-{effort}", "settings": {"reasoning_effort": effort}} for effort in ("low", "high")
    ]
    plan["lanes"] = [lane for lane in plan["lanes"] if lane["id"] == arm["lane"]]
    plan["tasks"] = [os.path.relpath(PROJECT / "corpus" / TASK, home)]
    for field in ("rate_card", "retail_policy"):
        plan[field] = os.path.relpath(demo / plan[field], home)
    plan |= {"round_id": "one", "replicates": 1, "seed": "7" * 64}
    path = home / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    return path


def kill_when(operator: Operator, round_dir: Path, kind: StatementKind) -> None:
    """Start the controller and SIGKILL it as soon as the log has one more statement of the kind."""
    before = count(round_dir, kind)
    process = subprocess.Popen(
        operator.command("start", str(round_dir)),
        env=operator.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while count(round_dir, kind) == before:
        assert process.poll() is None, "the controller ended before it could be killed"
        assert time.monotonic() < deadline, f"no {kind} within {WAIT_SECONDS} s"
        pause(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()


def pause(seconds: float) -> None:
    """Wait between two looks at a log that another process writes."""
    signal.sigtimedwait([signal.SIGUSR2], seconds)


def of_kind(round_dir: Path, kind: StatementKind) -> list[Statement]:
    """The log's statements of one kind."""
    journal = SqlJournal.in_directory(round_dir)
    try:
        return [statement for statement in journal.statements() if statement.kind is kind]
    finally:
        journal.close()


def count(round_dir: Path, kind: StatementKind) -> int:
    return len(of_kind(round_dir, kind))


def test_no_attempt_was_repeated_and_every_run_has_its_score(finished: Path, operator: Operator) -> None:
    status = operator.json("status", str(finished))
    assert (status["state"], status["scored"], status["halted"]) == ("closed", 2, 0)
    intents = {
        s.subject for s in SqlJournal.in_directory(finished).statements() if s.kind is StatementKind.ATTEMPT_INTENDED
    }
    rows = [json.loads(line) for line in (finished / "dataset.jsonl").read_text().splitlines()]
    assert {attempt["attempt_id"] for row in rows for attempt in row["attempts"]} == intents
    assert all(row["outcome"] in ("success", "failure") and row["usd"] for row in rows)


def test_every_attempt_carries_its_isolation_receipt(finished: Path) -> None:
    receipts = [statement.body for statement in of_kind(finished, StatementKind.ISOLATION_RECEIPT)]
    assert receipts
    for receipt in receipts:
        assert receipt["mismatches"] == []
        assert receipt["probes_refused"] >= 20


def test_no_machine_and_no_service_outlives_the_round(finished: Path, operator: Operator) -> None:
    names = {
        s.subject for s in SqlJournal.in_directory(finished).statements() if s.kind is StatementKind.SANDBOX_LEASED
    }
    assert names
    assert not names & {machine["name"] for machine in operator.json("pool", "list")}
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.is_file()]
    for name in (*names, str(finished)):
        assert not [command for command in commands if name.encode() in command]


def test_a_stranger_accepts_the_bundle_and_refuses_it_with_one_byte_changed(finished: Path, operator: Operator) -> None:
    bundle = operator.home / "release" / "v1"
    assert operator.json("check", str(bundle), "--key", str(finished / "keys.json"))["passed"]
    victim = bundle / "dataset.jsonl"
    data = victim.read_bytes()
    victim.chmod(0o644)
    victim.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    operator.run("check", str(bundle), code=92)
    victim.write_bytes(data)


def test_the_report_is_one_page_that_says_what_it_is(finished: Path) -> None:
    report = (finished / "report.html").read_text()
    assert "Rehearsal" in report
    assert "no reliable difference" in report
    assert "<script" not in report
    assert "http://" not in report.replace("http://www.w3.org", "")
