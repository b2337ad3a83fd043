"""`fairtrial settle` on a round whose log and ledger lie on the disk: one screen, JSON, faults by their path."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.adapters.signer_file import FileSigner
from controller.cli.__main__ import main
from controller.domain.instant import InstantMs
from controller.domain.provider_report import MINUTE_MS
from controller.ports.ledger import MeterLife
from tests.world.recorded_round import START
from tests.world.simulation import Simulation, started
from tests.world.usage_reports import openai_page

LOST = "first.alpha.r1"
LAST_MINUTE = 60


@pytest.fixture
def round_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished round of which one answer was lost."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    found = Simulation(
        tmp_path,
        loses=lambda run, sequence: (run, sequence) == (LOST, 2),
        signer=FileSigner.open(tmp_path / "state" / "keys" / "publisher.pem"),
        journal=SqlJournal.in_directory,
    )
    ledger = SqliteLedger(found.directory / "ledger.sqlite", found.clock, meter=MeterLife(place="here", life="1"))
    found.ledger = ledger  # type: ignore[assignment]
    started(found, 1)
    found.conduct(found.world())
    ledger.close()
    assert isinstance(found.journal, SqlJournal)
    found.journal.close()
    return found.directory


def write_reports(tmp_path: Path, *, keys: bool = True) -> str:
    """A report by which every settled request was billed, and the lost one was not."""
    start = START // MINUTE_MS - 5
    minutes = [InstantMs((start + number) * MINUTE_MS) for number in range(LAST_MINUTE)]
    runs = [f"{task}.{arm}.r1" for task in ("first", "second") for arm in ("alpha", "beta")]
    rows = []
    connection = sqlite3.connect(tmp_path / "round" / "ledger.sqlite")
    for run, accepted_at in connection.execute(
        "SELECT logical_run_id, accepted_at FROM requests WHERE state = 'settled'"
    ):
        usage = {"input_tokens": 1_000, "output_tokens": 100, "num_model_requests": 1}
        rows.append((InstantMs(accepted_at // MINUTE_MS * MINUTE_MS), f"key_{run}", usage))
    connection.close()
    merged: dict[tuple[InstantMs, str], dict[str, int]] = {}
    for minute, key, usage in rows:
        cell = merged.setdefault((minute, key), dict.fromkeys(usage, 0))
        for name, count in usage.items():
            cell[name] += count
    path = tmp_path / "usage.json"
    path.write_bytes(openai_page([(m, k, u) for (m, k), u in merged.items()], minutes=minutes))
    if keys:
        ids = {f"rehearsal:{run.replace('.', ':').replace(':r1', ':1')}:1": f"key_{run}" for run in runs}
        (tmp_path / "state" / "keys" / "key-ids.json").write_text(json.dumps(ids))
    return str(path)


def settle(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["settle", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = settle(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_report_on_the_disk_proves_the_lost_answer_free(
    round_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = write_reports(tmp_path)
    looked = as_json(capsys, str(round_dir), "--dry-run")
    assert (looked["closed"], looked["usd"], looked["floor_usd"]) == (False, None, "0.021")
    assert looked["invalid_runs"] == [LOST]
    found = as_json(capsys, str(round_dir), "--usage-report", report)
    assert (found["closed"], found["usd"], found["figure"], found["invalid_runs"]) == (True, "0.021", "exact", [])
    assert found["reports"]["findings"] == {"agrees": 4}
    (resolved,) = next(run for run in found["runs"] if run["run"] == LOST)["resolved"]
    assert (resolved["proof"], resolved["sequence"]) == ("provider_usage_report", 2)
    again = as_json(capsys, str(round_dir))
    assert again["usd"] == "0.021"


def test_the_books_are_one_screen(round_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = settle(capsys, str(round_dir), "--dry-run")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == ("small: not closed: nothing was written; 4 attempts, 8 requests, at least $0.0210")
    assert len(lines) <= 24
    assert all(len(line) <= 120 for line in lines)
    assert any(line.startswith("  alpha") and "≥ $0.0090" in line and "floor" in line for line in lines)
    assert any(LOST in line and "request 2 is unknown" in line for line in lines)


def test_faults_name_file_and_field(round_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_reports(tmp_path, keys=False)
    code, _, err = settle(capsys, str(round_dir), "--usage-report", report)
    assert code == 72
    assert "key-ids.json" in err
    assert '{"<key name>"' in err
    page = json.loads(Path(report).read_text())
    page["data"][3]["end_time"] += 60
    Path(report).write_text(json.dumps(page))
    code, _, err = settle(capsys, str(round_dir), "--usage-report", report)
    assert code == 72
    assert "usage.json: data[3]: the bucket from" in err
    policy = tmp_path / "policy.json"
    policy.write_text('{"schema_version": "fairtrial.retail-policy/1"}')
    code, _, err = settle(capsys, str(round_dir), "--retail-policy", str(policy))
    assert code == 72
    assert "policy.json: name" in err


def test_the_frozen_retail_terms_are_shown_unless_others_are_asked_for(
    round_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = as_json(capsys, str(round_dir), "--dry-run")
    by_arm = {arm["arm"]: arm["retail_usd"] for arm in frozen["arms"]}
    assert (frozen["retail_policy"], by_arm["beta"]) == ("whole cents", "0.02")  # two runs of $0.006, a cent each
    assert by_arm["alpha"] is None  # one of its runs has an unknown cost
    other = {"name": "dimes", "source": "invented", "quantum_usd": "0.1", "rounding": "ceiling", "rounded_per": "run"}
    policy = tmp_path / "dimes.json"
    policy.write_text(json.dumps({"schema_version": "fairtrial.retail-policy/1", **other}))
    asked = as_json(capsys, str(round_dir), "--dry-run", "--retail-policy", str(policy))
    assert asked["retail_policy"] == "dimes"
    assert {arm["arm"]: arm["retail_usd"] for arm in asked["arms"]}["beta"] == "0.2"
