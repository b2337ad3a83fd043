"""The disclosure of a retired round: in time, whole, and checked by a stranger; nothing else passes for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.sealed_store import SealedStore
from controller.cli.__main__ import main
from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.statement import StatementKind
from controller.errors import (
    BundleRejected,
    EvidenceError,
    InvalidInput,
    InvalidPlan,
    LeakFound,
    NotPublishable,
    SealedKeyMissing,
)
from controller.evidence.canonical import dumps
from controller.evidence.retirement import EMBARGO_MS
from controller.freeze import read_plan
from controller.wiring.reveal import Disclosed, check_disclosure, reveal_round
from controller.wiring.round_tasks import sealed_tasks
from tests.unit.wiring.test_sealed_rounds import PLAN
from tests.world.clock import SetClock
from tests.world.recorded_round import inputs
from tests.world.sealed import sealed_task
from tests.world.sealed_site import NAMES, Site, run
from tests.world.simulation import Simulation

DAY_MS = 24 * 3600 * 1000


def disclose(site: Site, out: str = "disclosed", *, at: int | None = None, next_round: Path | None = None) -> Path:
    """Disclose, by default on the first moment it is due; where it lies."""
    path = site.directory / out
    clock = SetClock(InstantMs(at if at is not None else site.closed_at() + EMBARGO_MS))
    reveal_round(site.settings, site.round, path, curator_key=site.curator_key, next_round=next_round, clock=clock)
    return path


def check(site: Site, disclosed: Path, *, next_bundle: Path | None = None) -> Disclosed:
    return check_disclosure(site.settings, disclosed, site.bundle, key=None, next_bundle=next_bundle)


def marks(site: Site) -> list[bool]:
    return [SealedStore(site.store).mark(name) is not None for name in NAMES]


def test_it_comes_on_the_ninetieth_day_and_not_a_second_earlier(closed: Site) -> None:
    due = closed.closed_at() + 90 * DAY_MS
    for early in (1, 1000, 89 * DAY_MS):
        with pytest.raises(NotPublishable, match="may be disclosed from"):
            disclose(closed, "early", at=due - early)
    assert not (closed.directory / "early").exists()
    assert marks(closed) == [False, False]
    out = disclose(closed, at=due)
    assert check(closed, out) == Disclosed(
        round_id="small", tasks=2, bases=1, revealed_at=InstantMs(due), unproven=("the base of omegas",)
    )
    assert marks(closed) == [True, True]
    run("reveal", closed.bundle, "--check", out)


def test_what_is_disclosed_and_what_is_not(closed: Site) -> None:
    out = disclose(closed)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    always = {"task.toml", "prompt.md", "verifier/cases.json", "verifier/driver.py"}
    patches = {f"patches/{path.name}" for path in (closed.round / "patches").iterdir()}
    assert len(patches) == 4
    assert names == {
        "reveal.json",
        *patches,
        *(f"tasks/{task}/{name}" for task in NAMES for name in always),
        "tasks/deltas/bug.patch",
        "tasks/deltas/base.json",
    }
    index = json.loads((out / "reveal.json").read_text())
    assert all(len(task["salt_hex"]) == 64 for task in index["tasks"])
    assert all({"gold.patch", "README.md"} <= task["files"].keys() for task in index["tasks"])
    assert (out / "tasks" / "omegas" / "prompt.md").read_text() == "Repair it.\n"


def test_a_disclosed_task_is_never_ranked_again(closed: Site) -> None:
    plan_path = closed.directory / "PLAN.yaml"
    plan_path.write_text(PLAN)
    plan = read_plan(plan_path)
    assert len(sealed_tasks(plan, plan_path)) == 2
    disclose(closed)
    with pytest.raises(InvalidPlan) as caught:
        sealed_tasks(plan, plan_path)
    assert [line.split(" was ")[0] for line in str(caught.value).splitlines()] == [
        f"PLAN.yaml: sealed[0]: {name}" for name in NAMES
    ]
    assert "after round small" in str(caught.value)


def test_a_round_without_sealed_tasks_and_an_existing_directory_are_refused(closed: Site) -> None:
    (closed.directory / "there").mkdir()
    with pytest.raises(InvalidInput, match="never overwritten"):
        disclose(closed, "there")
    plain = Simulation(closed.directory / "plain", journal=SqlJournal.in_directory)
    plain.journal.close()  # type: ignore[attr-defined]
    shutil.rmtree(closed.round)
    plain.directory.rename(closed.round)
    with pytest.raises(InvalidInput, match="no sealed tasks"):
        disclose(closed, at=2**50)
    assert marks(closed) == [False, False]


def test_only_the_curators_key_discloses(closed: Site) -> None:
    shutil.copy(closed.keys / "sealed-verifier.pem", closed.curator_key)
    with pytest.raises(SealedKeyMissing, match="its runner part is not sealed for"):
        disclose(closed)
    closed.curator_key.unlink()
    with pytest.raises(SealedKeyMissing, match="no key for the curator part"):
        disclose(closed)
    assert not (closed.directory / "disclosed").exists()
    assert marks(closed) == [False, False]


def test_a_patch_that_holds_a_secret_is_not_disclosed(closed: Site) -> None:
    secret = b"the round's secret, thirty-two by"
    (closed.round / "round.secret").write_bytes(secret)
    for path in (closed.round / "patches").iterdir():
        path.write_bytes(secret)
    with pytest.raises(LeakFound, match="holds a known secret"):
        disclose(closed)


def test_patches_that_were_changed_are_not_disclosed(closed: Site) -> None:
    next((closed.round / "patches").iterdir()).write_bytes(b"another patch")
    with pytest.raises(BundleRejected, match="the patches are not those that were judged"):
        disclose(closed)
    assert marks(closed) == [False, False]


# -- the next round -------------------------------------------------------------------------------------------------


def next_round(site: Site, *, starts_at: InstantMs | None) -> Path:
    """A round on other sealed tasks, frozen after the first and perhaps started."""
    given = inputs(replicates=1, given=[sealed_task("other")[0].entry], round_id="next")
    found = Simulation(site.directory / "next", given=given, journal=SqlJournal.in_directory)
    if starts_at is not None:
        body = bodies.RoundStarted(
            manifest_digest=found.frozen.digest, authorization_digest=found.frozen.digest, epoch=1, pool="qemu",
            isolation="vm",
        )  # fmt: skip
        found.journal.append(StatementKind.ROUND_STARTED, "next", body, at=starts_at)
    found.journal.close()  # type: ignore[attr-defined]
    return found.directory


@pytest.fixture
def later_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is frozen in this test is frozen after the round that is disclosed."""
    monkeypatch.setattr("tests.world.recorded_round.START", InstantMs(1_790_001_000_000))


@pytest.mark.usefixtures("later_freeze")
def test_the_start_of_the_next_round_makes_it_due_and_not_its_freeze(closed: Site) -> None:
    start = InstantMs(closed.closed_at() + 5 * DAY_MS)
    with pytest.raises(NotPublishable, match="may be disclosed from"):
        disclose(closed, at=start + DAY_MS, next_round=next_round(closed, starts_at=None))
    shutil.rmtree(closed.directory / "next")
    following = next_round(closed, starts_at=start)
    with pytest.raises(NotPublishable, match="may be disclosed from"):
        disclose(closed, at=start - 1000, next_round=following)
    out = disclose(closed, at=start, next_round=following)
    found = check(closed, out)
    assert "that the next round had started (give its bundle with --next)" in found.unproven
    assert json.loads((out / "reveal.json").read_text())["next_manifest_digest"] == sha256_digest(
        (following / "manifest.json").read_bytes()
    )


@pytest.mark.usefixtures("later_freeze")
def test_after_ninety_days_the_next_round_is_no_longer_the_reason(closed: Site) -> None:
    out = disclose(closed, next_round=next_round(closed, starts_at=InstantMs(closed.closed_at() + DAY_MS)))
    assert json.loads((out / "reveal.json").read_text())["next_manifest_digest"] is None


def test_the_bundle_of_another_round_does_not_prove_the_start(closed: Site) -> None:
    out = rewritten(closed, disclose(closed), lambda index, files: index.update(next_manifest_digest=WRONG))
    with pytest.raises(BundleRejected, match=f"the next round is {WRONG}, the bundle is of"):
        check(closed, out, next_bundle=closed.bundle)


# -- what a stranger refuses ----------------------------------------------------------------------------------------

WRONG = "sha256:" + "0" * 64
Files = dict[str, bytes]


def rewritten(site: Site, disclosed: Path, change: Callable[[dict[str, Any], Files], object]) -> Path:
    """A disclosure by somebody who changes files, index and all, and makes them fit as far as he can."""
    files = LocalFiles().read_directory(disclosed, bytes_max=2**30)
    index = json.loads(files.pop("reveal.json"))
    change(index, files)
    index["files"] = [
        {"name": name, "bytes": len(files[name]), "digest": sha256_digest(files[name])} for name in sorted(files)
    ]
    out = site.directory / "rewritten"
    LocalFiles().create_directory(out, {**files, "reveal.json": dumps(index)})
    return out


def _task(index: dict[str, Any], name: str = "deltas") -> dict[str, Any]:
    found: dict[str, Any] = next(task for task in index["tasks"] if task["opening"]["id"] == name)
    return found


def _prompt(index: dict[str, Any], files: Files) -> None:
    files["tasks/deltas/prompt.md"] = b"Another prompt.\n"


def _prompt_and_digests(index: dict[str, Any], files: Files) -> None:
    _prompt(index, files)
    digest = sha256_digest(b"Another prompt.\n")
    _task(index)["files"]["prompt.md"] = digest
    _task(index)["opening"]["prompt_digest"] = digest


def _base(index: dict[str, Any], files: Files) -> None:
    files["tasks/deltas/base.json"] = dumps({"files": {}, "schema_version": "fairtrial.base/1"})


def _swap(index: dict[str, Any], files: Files) -> None:
    deltas, omegas = _task(index), _task(index, "omegas")
    deltas["salt_hex"], omegas["salt_hex"] = omegas["salt_hex"], deltas["salt_hex"]


def _salt(index: dict[str, Any], files: Files) -> None:
    _task(index)["salt_hex"] = "0" * 64


def _drop_task(index: dict[str, Any], files: Files) -> None:
    index["tasks"] = [_task(index)]
    for name in [name for name in files if name.startswith("tasks/omegas/")]:
        del files[name]


def _claim_gold(index: dict[str, Any], files: Files) -> None:
    _task(index)["files"]["gold.patch"] = WRONG


def _rename(index: dict[str, Any], files: Files) -> None:
    _task(index)["opening"]["id"] = "daleths"
    for name in [name for name in files if name.startswith("tasks/deltas/")]:
        files[name.replace("deltas", "daleths")] = files.pop(name)


def _hide_base(index: dict[str, Any], files: Files) -> None:
    _task(index)["base_disclosed"] = False
    del files["tasks/deltas/base.json"], files["tasks/deltas/bug.patch"]


CHANGES: dict[str, tuple[Callable[[dict[str, Any], Files], object], str]] = {
    "another prompt": (_prompt, "prompt.md is not the file that was sealed"),
    "another prompt with its digests": (_prompt_and_digests, "task deltas does not open its commitment"),
    "another base": (_base, "its base_digest does not follow"),
    "salts exchanged": (_swap, "does not open its commitment"),
    "salt invented": (_salt, "task deltas does not open its commitment"),
    "a task kept back": (_drop_task, "task omegas is missing"),
    "a task twice": (lambda i, f: i["tasks"].append(_task(i)), "not in order, each of them once"),
    "another order": (lambda i, f: i["tasks"].reverse(), "not in order"),
    "a task of no round": (_rename, "task daleths was never sealed in this round"),
    "another gold patch": (_claim_gold, "its (task|gold)_digest does not follow"),
    "the gold patch": (lambda i, f: f.update({"tasks/deltas/gold.patch": b""}), r"gold\.patch is missing, or was not"),
    "a verifier kept back": (lambda i, f: f.pop("tasks/omegas/verifier/cases.json"), r"cases\.json is missing"),
    "another licence": (lambda i, f: _task(i).update(licence="GPL-3.0-only"), "its licence is MIT, not GPL-3.0-only"),
    "a stray file": (lambda i, f: f.update({"notes.txt": b""}), r"notes\.txt belongs to no disclosed task"),
    "a file of a strange task": (lambda i, f: f.update({"tasks/zetas/prompt.md": b""}), "belongs to no disclosed task"),
    "a patch kept back": (lambda i, f: f.pop(min(n for n in f if n.startswith("patches/"))), "the patches are not"),
    "another patch": (lambda i, f: f.update({min(n for n in f if n.startswith("patches/")): b"x"}), "the patches are"),
    "another round": (lambda i, f: i.update(round_id="large"), "it is of round large"),
    "another manifest": (lambda i, f: i.update(manifest_digest=WRONG), "it is of round small, sha256:0000"),
    "dated a second early": (lambda i, f: i.update(revealed_at=i["revealed_at"] - 1000), "it is dated"),
    "closed earlier": (lambda i, f: i.update(closed_at=i["closed_at"] - 1), "the log does not close the round at"),
    "an unknown field": (lambda i, f: i.update(colour="red"), "colour"),
    "a salt too short": (lambda i, f: _task(i).update(salt_hex="00"), "salt_hex"),
    "a path for an id": (lambda i, f: _task(i)["opening"].update(id="../../x"), "id"),
    "no task": (lambda i, f: i.update(tasks=[]), "tasks"),
}


@pytest.fixture(scope="module")
def disclosed(_sites: tuple[Site, Site], tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """A site whose round was disclosed, read and never changed by the tests."""
    directory = tmp_path_factory.mktemp("disclosed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_STATE_DIR", str(directory / "state"))
        site = _sites[1].copied(directory)
        return site, disclose(site)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_disclosure_is_refused(name: str, disclosed: tuple[Site, Path]) -> None:
    change, said = CHANGES[name]
    site, original = disclosed
    out = rewritten(site, original, change)
    try:
        with pytest.raises(EvidenceError, match=said):
            check(site, out)
    finally:
        shutil.rmtree(out)


def test_a_base_that_may_be_kept_back_is_told_as_unproven(disclosed: tuple[Site, Path]) -> None:
    """Nobody is forced to pass a source on; but the check does not call it seen."""
    site, original = disclosed
    out = rewritten(site, original, _hide_base)
    assert check(site, out).unproven == ("the base of deltas", "the base of omegas")
    shutil.rmtree(out)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda out: (out / "reveal.json").unlink(),
        lambda out: (out / "reveal.json").write_bytes(b"{}"),
        lambda out: (out / "reveal.json").write_bytes(b'{"a":1,"a":1}'),
        lambda out: (out / "reveal.json").write_bytes(b"[" * 100_000),
        lambda out: (out / "reveal.json").open("a").write(" "),
        lambda out: (out / "tasks" / "deltas" / "prompt.md").write_text("x"),
        lambda out: (out / "tasks" / "deltas" / "prompt.md").unlink(),
        lambda out: (out / "extra").write_text("x"),
        lambda out: (out / "extra").symlink_to("reveal.json"),
    ],
)
def test_damage_is_refused_on_one_screen(
    spoil: Callable[[Path], object], disclosed: tuple[Site, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, original = disclosed
    out = tmp_path / "copy"
    shutil.copytree(original, out)
    spoil(out)
    code = main(["reveal", str(site.bundle), "--check", str(out)])
    assert code in (InvalidInput.exit_code, BundleRejected.exit_code, 90)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "What to do" in said


@pytest.mark.parametrize(
    "arguments",
    [[], ["--out", "x"], ["--curator-key", "k"], ["--check", "d", "--out", "x"], ["--key", "k", "--out", "x"]],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str]) -> None:
    assert main(["reveal", "round", *arguments]) == InvalidInput.exit_code
