"""`fairtrial analyse --protocol cost-index` and `optimizer-matrix`, from files to one document or one screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.cli.__main__ import main
from controller.domain.bodies import RoundFrozen
from controller.domain.ids import sha256_digest
from controller.domain.statement import StatementKind
from tests.world.cost_index import case
from tests.world.policy_matrix import all_planted, matrix, plan
from tests.world.recorded_round import conducted
from tests.world.rounds import SEED, jsonl, run


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))


def analysed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["analyse", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_cost_index_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "cohort.jsonl"
    source.write_bytes(jsonl([case("refund", stack, task) for stack in ("a", "b") for task in ("t1", "t2")]))
    code, out, _ = analysed(capsys, str(source), "--protocol", "cost-index", "--seed", SEED, "--json")
    found = json.loads(out)
    assert (code, found["protocol"], found["seed"], found["cells"][0]["cost_per_outcome"]["value"]) == (
        0,
        "cost-index",
        SEED,
        "1",
    )
    code, out, _ = analysed(capsys, str(source), "--protocol", "cost-index", "--seed", SEED)
    assert (code, out.splitlines()[0]) == (0, "This comparison is not qualified: all-cells.")
    assert "NO  all-cells: 2 of 60 cells" in out


def test_an_optimizer_matrix_with_its_frozen_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen, source = tmp_path / "plan.json", tmp_path / "matrix.jsonl"
    frozen.write_text(plan().model_dump_json())
    digest = sha256_digest(frozen.read_bytes())
    rows = [*matrix({"adaptive": "0.5"}), *all_planted(3)]
    source.write_bytes(jsonl([row.model_copy(update={"manifest_digest": digest}) for row in rows]))
    arguments = (str(source), "--protocol", "optimizer-matrix", "--frozen", str(frozen))
    code, out, _ = analysed(capsys, *arguments, "--json")
    found = json.loads(out)
    assert (code, found["funded"]["passed"], found["plan_digest"], found["step_reached"]) == (0, True, digest, 5)
    code, out, _ = analysed(capsys, *arguments)
    assert code == 0
    assert "funded-target: passes" in out
    assert "ok  total-cost: 100 x 15 against 70 x 30" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--protocol", "cost-index", "--seed", "xyz"), "seed: 'xyz' is not 64 hex digits"),
        (("--protocol", "optimizer-matrix", "--seed", "xyz"), "seed: 'xyz' is not 64 hex digits"),
        (("--protocol", "optimizer-matrix"), "arm: no run of the policy 'adaptive'"),
        (("--protocol", "cost-index", "--frozen", "plan.json"), "plan.json: stacks: Field required"),
        (("--frozen", "plan.json"), "frozen: a harness-round has its plan in the manifest"),
    ],
)
def test_what_is_wrong_is_one_screen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text('{"frozen_on": "2026-10-01"}')
    Path("d.jsonl").write_bytes(jsonl([case("refund", "a", "t1")]))
    code, out, err = analysed(capsys, "d.jsonl", *arguments)
    assert (code, out) == (72, "")
    assert message in err
    assert "Traceback" not in err


def test_a_round_is_analysed_by_its_own_protocol_and_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = conducted(tmp_path / "round")
    journal = SqlJournal.in_directory(found.directory)
    frozen = RoundFrozen(manifest_digest=found.manifest_digest, corpus_root=found.manifest.corpus_root)
    journal.append(StatementKind.ROUND_FROZEN, found.manifest.round_id, frozen, at=found.manifest.frozen_at)
    journal.close()
    code, _, err = analysed(capsys, str(found.directory), "--protocol", "cost-index")
    assert code == 72
    assert "a round of harness-round, which no other protocol may analyse" in err
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    code, _, err = analysed(capsys, str(found.directory), "--frozen", str(plan))
    assert code == 72
    assert "frozen: a round is analysed by the plan and the seed in its manifest" in err


def test_figures_are_written_once_and_only_of_a_harness_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "dataset.jsonl", tmp_path / "figures"
    source.write_bytes(jsonl([run(task, arm, 1) for task in ("t1", "t2") for arm in ("a", "b")]))
    code, _, err = analysed(capsys, str(source), "--seed", SEED, "--figures", str(out))
    assert code == 0 and f"wrote {out / 'success-differences.svg'}" in err
    assert len(list(out.glob("*.svg"))) == 7 and len(list(out.glob("*.png"))) == 14
    code, _, err = analysed(capsys, str(source), "--seed", SEED, "--figures", str(out))
    assert code == 72 and "exists" in err
    code, _, err = analysed(capsys, str(source), "--protocol", "cost-index", "--figures", str(out))
    assert code == 72 and "figures: only of a harness-round" in err
