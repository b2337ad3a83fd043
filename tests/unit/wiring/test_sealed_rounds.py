"""Sealed tasks from their directories to a published round, without a machine or a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.cli.__main__ import main
from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.domain.statement import StatementKind
from controller.errors import BundleRejected, InvalidInput, InvalidPlan, InvalidTask, SealedKeyMissing
from controller.evidence import bundle
from controller.evidence.canonical import dumps, loads
from controller.evidence.check import examine
from controller.wiring import freezing
from controller.wiring.rounds import read_round
from tests.world.sealed_site import NAMES, Site, let_rehearsals_have_them, run
from tests.world.signer import FixedSigner
from tests.world.simulation import started
from tests.world.task_directory import write_task

PLAN = """
round_id: hidden-round
title: A round on sealed tasks
protocol: harness-round
kind: rehearsal
seed: generate
replicates: 1
sealed: [store]
arms:
  - {id: codex, title: Codex, harness: codex, lane: lane}
  - {id: mini, title: Mini, harness: mini-swe-agent, lane: lane}
lanes:
  - {id: lane, provider: rehearsal, model: rehearsal-1, observed_models: [rehearsal-1]}
rate_card: card.json
"""


@pytest.fixture
def plan(site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan beside the store, on the machine of a harness developer: no key but that of its own signature."""
    for key in site.keys.glob("sealed-*"):
        key.unlink()
    shutil.rmtree(site.curator_key.parent)
    card = Path(__file__).parents[3] / "policies" / "rounds" / "rate-card-rehearsal.json"
    shutil.copy(card, site.directory / "card.json")
    path = site.directory / "PLAN.yaml"
    path.write_text(PLAN)
    digest = "sha256:" + "1" * 64
    monkeypatch.setattr(freezing, "require_images", lambda settings, names: dict.fromkeys(names, digest))
    return path


def test_the_store_tells_nothing_but_the_metadata(site: Site) -> None:
    files = [path for path in site.store.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"task.json", "runner.sealed", "verifier.sealed", "curator.sealed"}
    everything = b"".join(path.read_bytes() for path in files)
    for content in (b"Repair it", b"ordinals.py", b"cases", b"curators should know", b"MIT", b"half"):
        assert content not in everything
    for part in ("runner", "verifier"):
        assert (site.keys / f"sealed-{part}.pem").stat().st_mode & 0o777 == 0o600


def test_what_is_not_fit_is_not_sealed(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    public = write_task(site.directory / "state", "open")
    caseless = write_task(site.directory / "state", "caseless", visibility="sealed")
    (caseless / "verifier" / "cases.json").write_text('{"cases": []}')
    good = write_task(site.directory / "state", "good", visibility="sealed")
    out = site.directory / "bad"
    for directories, said in (
        ([good, public], "task open is public"),
        ([good, caseless], "task caseless: verifier/cases.json"),
        ([good, good], "task good is given twice"),
    ):
        arguments = [*map(str, directories), *site.recipients, "--out", str(out)]
        assert main(["task", "seal", *arguments]) == InvalidTask.exit_code
        assert said in capsys.readouterr().err
    arguments = [str(good), *site.recipients[:2], "--out", str(out)]
    assert main(["task", "seal", *arguments]) == InvalidInput.exit_code
    assert "no key for verifier, curator" in capsys.readouterr().err
    assert not out.exists()


def test_a_machine_without_keys_freezes_and_schedules(plan: Path, site: Site) -> None:
    let_rehearsals_have_them(site)
    run("freeze", plan, "--out", site.directory / "round")
    found = read_round(site.directory / "round")
    found.journal.close()
    assert [task.id for task in found.manifest.tasks] == list(NAMES)
    assert {entry.task for entry in found.manifest.schedule} == set(NAMES)
    for task in found.manifest.tasks:
        assert task.sealed is not None
        assert task.task_digest is task.prompt_digest is task.base_digest is task.gold_digest is None
    places = json.loads((site.directory / "round" / "tasks.json").read_text())
    assert places == dict.fromkeys(NAMES, str(site.store))
    run("status", site.directory / "round")


def test_a_task_that_can_not_be_played_is_named_without_opening_it(plan: Path, site: Site) -> None:
    with pytest.raises(InvalidPlan, match=r"no rehearsal\.json in deltas, omegas"):
        freezing.freeze_plan(site.settings, plan, site.directory / "round")


def test_the_same_id_in_two_places_is_refused(plan: Path, site: Site) -> None:
    let_rehearsals_have_them(site)
    shutil.copytree(site.store, site.directory / "copy")
    plan.write_text(PLAN.replace("[store]", "[store, copy]"))
    with pytest.raises(InvalidPlan, match="tasks: id 'deltas' appears 2 times"):
        freezing.freeze_plan(site.settings, plan, site.directory / "round")


def test_a_machine_without_keys_checks_a_bundle(closed: Site) -> None:
    for key in closed.keys.glob("sealed-*"):
        key.unlink()
    run("check", closed.bundle)


@pytest.mark.parametrize("part", ["runner", "verifier"])
def test_without_a_key_nothing_is_leased(part: str, site: Site) -> None:
    found = site.simulated()
    (site.keys / f"sealed-{part}.pem").unlink()
    with pytest.raises(SealedKeyMissing, match=f"no key for the {part} part"):
        site.tasks(found)
    run("task", "key", part, "--out", site.directory / "new.pem")
    shutil.move(site.directory / "new.pem", site.keys / f"sealed-{part}.pem")
    with pytest.raises(SealedKeyMissing, match=f"its {part} part is not sealed for x25519:"):
        site.tasks(found)


def test_a_verifier_key_that_is_gone_fails_the_lease_closed_and_the_round_waits(site: Site) -> None:
    found = site.simulated()
    found.tasks = site.tasks(found)
    started(found, 1)
    key = site.keys / "sealed-verifier.pem"
    key.rename(site.directory / "kept.pem")
    with pytest.raises(SealedKeyMissing, match="no key for the verifier part"):
        found.conduct(found.world())
    assert StatementKind.VERDICT not in {statement.kind for statement in found.journal.statements()}
    assert not found.pool.machines, "the verifier machine is not left behind"
    (site.directory / "kept.pem").rename(key)
    assert set(found.conduct(found.world()).values()) == {"scored"}


def test_the_hidden_cases_are_opened_only_when_a_verifier_machine_is_leased(site: Site) -> None:
    found = site.simulated()
    real = site.tasks(found)
    leased: list[bool] = []

    class Watched:
        def brief(self, task: str) -> Any:
            return real.brief(task)

        def bundle(self, task: str) -> Any:
            leased.append(any(name.startswith("ver-") for name in found.pool.machines))
            return real.bundle(task)

    found.tasks = Watched()
    started(found, 1)
    found.conduct(found.world())
    assert leased == [True] * len(found.frozen.manifest.schedule)


def test_a_store_that_was_changed_after_the_freeze_is_refused(site: Site) -> None:
    found = site.simulated()
    path = site.store / "deltas" / "task.json"
    text = loads(path.read_bytes(), "task")
    path.write_bytes(dumps({**text, "entry": {**text["entry"], "title": "Another"}}))
    with pytest.raises(InvalidTask, match=r"task deltas in .* is not the one that was frozen"):
        site.tasks(found)


def test_a_ciphertext_that_was_exchanged_after_the_freeze_is_refused(site: Site) -> None:
    found = site.simulated()
    runner, other = (site.store / name / "runner.sealed" for name in NAMES)
    kept = runner.read_bytes()
    runner.write_bytes(other.read_bytes())
    with pytest.raises(BundleRejected, match="task deltas: its runner part is not the one that was sealed"):
        site.tasks(found)
    runner.write_bytes(kept)
    tasks = site.tasks(found)
    (site.store / "deltas" / "verifier.sealed").write_bytes((site.store / "omegas" / "verifier.sealed").read_bytes())
    with pytest.raises(BundleRejected, match="task deltas: its verifier part is not the one that was sealed"):
        tasks.bundle("deltas")


def test_a_round_that_does_not_know_where_a_task_lies_is_refused(site: Site) -> None:
    found = site.simulated()
    with pytest.raises(InvalidTask, match="task deltas: this machine does not know where it lies"):
        type(site.tasks(found))(site.settings, found.frozen.manifest, {})


def test_the_bundle_holds_nothing_of_a_sealed_task(closed: Site) -> None:
    assert list((closed.round / "patches").glob("*.patch"))
    assert not (closed.bundle / "patches").exists()
    for path in (path for path in closed.bundle.rglob("*") if path.is_file()):
        for content in (b"a.py", b"as arranged", b"patch of", b"Repair it"):
            assert content not in path.read_bytes(), path.name


def test_a_bundle_that_holds_a_patch_of_a_sealed_task_is_refused(closed: Site) -> None:
    files = LocalFiles().read_directory(closed.bundle, bytes_max=2**30)
    index = files.pop(bundle.INDEX)
    patch = next((closed.round / "patches").iterdir())
    signer = FixedSigner()
    digest = sha256_digest(files[bundle.MANIFEST])
    leaking = {**files, f"patches/{patch.name}": patch.read_bytes()}
    for content, passes in ((files, True), (leaking, False)):
        built = bundle.build(content, signer, round_id="small", manifest_digest=digest)
        report = examine(built, RoundRecompute(), keys=signer.ring)
        assert report.passed is passes
    failed = next(step for step in report.steps if step.passed is False)
    assert (failed.number, "belongs to no verdict on an open task" in failed.detail) == (6, True)
    assert bundle.build(files, signer, round_id="small", manifest_digest=digest)[bundle.INDEX] == index
