"""The conformance folder: its bytes are those the script makes, and both checkers say what its table says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.keys import KeyRing
from controller.evidence.bundle import KEYS
from controller.evidence.canonical import parse
from controller.evidence.check import STEPS
from controller.evidence.check import examine as examine_full
from controller.offline.check import examine as examine_alone
from controller.offline.refusal import Refused
from controller.offline.signatures import read_keys
from tests.world.bundle_corpus import FOLDER, Case, contents, corpus, laid, table
from tests.world.tampering import Files

CASES = table(FOLDER)
IDS = [f"{case.name}-{'pinned' if case.pinned else 'inside'}" for case in CASES]
PINNED = (FOLDER / KEYS).read_bytes()
NOT_RECOMPUTED = {f"{protocol}-conclusion-changed" for protocol in ("cost-index", "optimizer-matrix")}


def test_the_committed_bytes_are_those_that_the_script_makes(tmp_path: Path) -> None:
    made = contents(corpus(tmp_path))
    kept = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in FOLDER.rglob("*")
        if path.is_file() and path.name not in ("README.md", ".gitattributes")
    }
    assert kept.keys() == made.keys()
    differing = [name for name in made if kept[name] != made[name]]
    assert differing == [], "run `python -m tests.world.bundle_corpus`"


def test_there_are_good_bundles_of_every_protocol_and_bad_ones_for_every_step() -> None:
    accepted = [case for case in CASES if case.step is None]
    protocols = {json.loads(laid(FOLDER, case)["manifest.json"])["protocol"] for case in accepted}
    assert protocols == {"harness-round", "cost-index", "optimizer-matrix"}
    assert {case.step for case in CASES} == {None, *range(1, len(STEPS) + 1)}
    assert len({case.name for case in CASES if case.step is not None}) >= 40
    assert len({case.row for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_both_checkers_say_what_the_table_says(case: Case) -> None:
    files = laid(FOLDER, case)
    assert _full(files, pinned=case.pinned) == case.step
    step, left_out = _alone(files, pinned=case.pinned)
    if case.name in NOT_RECOMPUTED:  # this checker leaves these analyses out, and says so
        assert step is None and any("analysis.json" in what for what in left_out)
    else:
        assert step == case.step


def _full(files: Files, *, pinned: bool) -> int | None:
    keys = parse(PINNED, KeyRing, KEYS) if pinned else None
    report = examine_full(files, RoundRecompute(), keys=keys)
    assert report.passed == all(step.passed for step in report.steps)
    return next((step.number for step in report.steps if step.passed is False), None)


def _alone(files: Files, *, pinned: bool) -> tuple[int | None, tuple[str, ...]]:
    try:
        keys = read_keys(PINNED if pinned else files[KEYS], KEYS)
    except Refused:
        return 1, ()
    report = examine_alone(files, keys, is_pinned=pinned)
    return next((step.number for step in report.steps if step.passed is False), None), report.not_recomputed
